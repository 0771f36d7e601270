// cloudProviderSpec: what the user writes for this cloud.

import { cut, refusal, type Violation } from './errors.js';

export interface Spec {
  size: string;
  image: string;
  zone: string;
}

const sizes = new Map([
  ['small', { cpu: '1', memory: '2Gi' }],
  ['large', { cpu: '4', memory: '8Gi' }],
]);

/** A default is part of the spec that VMs are compared with: it must never change, and is not left to the cloud. */
const defaults = { zone: 'a' };

const string = { type: 'string', minLength: 1 };

const properties: Record<string, object> = {
  size: { ...string, enum: [...sizes.keys()], description: 'How large the VM is.' },
  image: { ...string, description: 'What the VM boots, such as ubuntu-24.04.' },
  zone: { ...string, description: 'Where the VM runs.' },
  // What may come from a Secret is writeOnly.
  token: { ...string, writeOnly: true, description: 'Opens an account; without it that is default.' },
};

export const schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'cloudProviderSpec of the example driver',
  type: 'object',
  additionalProperties: false,
  required: ['size', 'image'],
  properties,
};

/** Returns the JSON object in raw, undefined where there is none. A parser's own error would quote what it has read. */
export function parseObject(raw: Buffer): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(raw.toString());
    return typeof value === 'object' && !Array.isArray(value) ? value ?? undefined : undefined;
  } catch {
    return undefined;
  }
}

/** Returns what is wrong with a spec. It asks neither the cloud nor for secrets. */
export function findViolations(raw: Buffer): Violation[] {
  const fields = parseObject(raw) ?? {};
  const missing = schema.required.filter((field) => !Object.hasOwn(fields, field));
  return [
    ...missing.map((field) => ({ field, description: 'must be set' })),
    ...Object.entries(fields).flatMap(([field, value]) => {
      const description = findFault(field, value);
      return description ? [{ field: cut(field, 160) || '""', description }] : [];
    }),
  ];
}

function findFault(field: string, value: unknown): string | undefined {
  if (!Object.hasOwn(properties, field)) return `is not a field; there are ${Object.keys(properties).join(', ')}`;
  if (typeof value !== 'string' || value === '') return 'must be a string, and not empty';
  if (field === 'size' && !sizes.has(value)) return `must be one of ${[...sizes.keys()].join(', ')}`;
  return undefined;
}

/** Returns the spec with its defaults; an error names every field that is wrong. */
export function parseSpec(raw: Buffer): Spec {
  const violations = findViolations(raw);
  if (violations.length > 0) throw refusal('SPEC_INVALID', violations);
  const { size, image, zone } = { ...defaults, ...parseObject(raw) } as Spec;
  return { size, image, zone };
}

/** Returns the spec with its defaults, as JSON; one that is wrong stays as it is. */
export function completeSpec(raw: Buffer): Buffer {
  return findViolations(raw).length > 0 ? raw : Buffer.from(JSON.stringify({ ...defaults, ...parseObject(raw) }));
}

/** Says what a VM of this spec offers, for scaling from zero. */
export function templateOf({ size }: Spec) {
  return { instance_type: size, capacity: sizes.get(size), architecture: 'amd64', operating_system: 'linux' };
}
