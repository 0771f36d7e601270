// The shape that a request must have before anything is done for it.

import { refusal } from './errors.js';
import { parseObject } from './spec.js';

export const maxUserData = 16 << 10;
const maxSpec = 512 << 10;
const maxState = 64 << 10;

/** A request whose messages are all there. */
export type Complete<T> = { [K in keyof T]: NonNullable<T[K]> };

/** What requests have in common: a message that is absent is null, a field that the request's type lacks undefined. */
export interface Shape {
  meta?: { request_id: string } | null;
  machine?: { namespace: string; name: string; uid: string } | null;
  provider?: { provider_spec: Buffer } | null;
  user_data?: Buffer;
  last_known_state?: Buffer;
  page_size?: number;
}

const required = [
  ['meta', 'request_id'], ['meta', 'cluster_uid'], ['machine', 'namespace'], ['machine', 'name'], ['machine', 'uid'],
  ['provider', 'provider_spec'],
] as const;

/** Returns the request; an error names every field that is wrong. */
export function checked<T extends object>(request: T): Complete<T> {
  const { provider, user_data, last_known_state, page_size = 0 }: Shape = request;
  const wrong = required
    .filter(([message, field]) => message in request && !Reflect.get(Reflect.get(request, message) ?? {}, field))
    .map(([message, field]) => ({ field: `${message}.${field}`, description: 'is required' }));
  if (provider && !parseObject(provider.provider_spec)) {
    wrong.push({ field: 'provider.provider_spec', description: 'is not a JSON object' });
  }
  if (page_size < 0) wrong.push({ field: 'page_size', description: 'is negative' });
  if (wrong.length > 0) throw refusal('SPEC_INVALID', wrong);
  const large = ([
    ['provider.provider_spec', provider?.provider_spec, maxSpec],
    ['user_data', user_data, maxUserData],
    ['last_known_state', last_known_state, maxState],
  ] as const).filter(([, value, limit]) => value && value.length > limit);
  if (large.length > 0) {
    throw refusal('REQUEST_TOO_LARGE', large.map(([field, , limit]) => ({ field, description: `has more than ${limit} bytes` })));
  }
  return request as Complete<T>;
}
