// An example driver for Millwright: its cloud is a folder. See README.md.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Cloud } from './cloud.js';
import { frames, log } from './log.js';
import { newServer } from './server.js';
import { listen } from './socket.js';

// How long calls that are under way may take to end once the driver is told to.
const grace = 25_000;

const { values: flags } = parseArgs({
  options: {
    endpoint: { type: 'string', default: process.env.MILLWRIGHT_ENDPOINT ?? '' },
    cloud: { type: 'string', default: 'cloud' },
    latency: { type: 'string', default: '1000' },
    proto: { type: 'string', default: fileURLToPath(new URL('../../../proto', import.meta.url)) },
  },
});

async function main(): Promise<void> {
  const latency = Number(flags.latency);
  if (!Number.isInteger(latency) || latency < 0) {
    throw new Error('set --latency to the milliseconds that a VM takes to come up, and to go');
  }
  await mkdir(join(flags.cloud, 'accounts', 'default'), { recursive: true });
  const server = newServer(new Cloud(flags.cloud, latency), flags.proto, latency);
  await listen(server, flags.endpoint);
  log('serving', { endpoint: flags.endpoint });
  const stop = (): void => {
    const cut = setTimeout(() => {
      log('calls under way did not end in time and were cut off', {});
      process.exit(1);
    }, grace);
    server.tryShutdown(() => clearTimeout(cut));
  };
  process.once('SIGTERM', stop).once('SIGINT', stop);
}

main().catch((error: unknown) => {
  log('driver ended', { error: error instanceof Error ? error.message : 'unknown', at: frames(error) });
  process.exitCode = 1;
});
