/** Writes a line to stderr. Nothing that a request holds may be in it, but names and uids. */
export function log(message: string, facts: object): void {
  console.error(JSON.stringify({ time: new Date().toISOString(), message, ...facts }));
}

/** Returns where an error was made, without its text: that could quote what a request holds. */
export function frames(error: unknown): string[] {
  const lines = error instanceof Error ? (error.stack ?? '').split('\n') : [];
  return lines.map((line) => line.trim()).filter((line) => line.startsWith('at '));
}
