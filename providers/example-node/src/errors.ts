// How this driver fails: with a reason of the contract, which has its one gRPC code and travels as google.rpc.ErrorInfo
// in the trailer grpc-status-details-bin. Without an ErrorInfo nobody would know how the call has ended.

import { fileURLToPath } from 'node:url';
import { Metadata, status } from '@grpc/grpc-js';
import { loadSync, type MessageTypeDefinition } from '@grpc/proto-loader';

/** The cloudProvider that selects this driver, and the domain of its errors. */
export const driverName = 'example-node';

/** The reasons that this driver gives; millwright/driver/v1alpha1/errors.proto has them all. */
const codes = {
  SPEC_INVALID: status.INVALID_ARGUMENT,
  REQUEST_TOO_LARGE: status.INVALID_ARGUMENT,
  PAGE_TOKEN_EXPIRED: status.INVALID_ARGUMENT,
  ACCOUNT_CHANGED: status.FAILED_PRECONDITION,
  STALE_EPOCH: status.FAILED_PRECONDITION,
  SPEC_CONFLICT: status.ALREADY_EXISTS,
  NAME_TAKEN: status.ALREADY_EXISTS,
  CREDENTIALS_INVALID: status.UNAUTHENTICATED,
  PERMISSION_MISSING: status.PERMISSION_DENIED,
  QUOTA_EXCEEDED: status.RESOURCE_EXHAUSTED,
  OPERATION_PENDING: status.ABORTED,
  MACHINE_NOT_FOUND: status.NOT_FOUND,
  PROVIDER_INTERNAL: status.INTERNAL,
  OUTCOME_UNKNOWN: status.UNAVAILABLE,
};

type Reason = keyof typeof codes;

/** A field that is wrong, by its path, and what would be right. Neither holds a secret. */
export interface Violation {
  field: string;
  description: string;
}

/** An error in the contract's terms. Its message is the same each time, and holds no secret. */
export class DriverError extends Error {
  constructor(readonly reason: Reason, message: string, readonly violations: Violation[] = []) { super(message); }
}

/** Returns the error of wrong fields. */
export function refusal(reason: Reason, violations: Violation[]): DriverError {
  return new DriverError(reason, violations.map((v) => `${v.field}: ${v.description}`).join('; '), violations);
}

/** What the codes of the cloud's errors, and of the file system's, mean. */
const meanings: Record<string, Reason> = {
  UNAUTHORIZED: 'CREDENTIALS_INVALID',
  BUSY: 'OPERATION_PENDING',
  EACCES: 'PERMISSION_MISSING',
  EPERM: 'PERMISSION_MISSING',
  EROFS: 'PERMISSION_MISSING',
  ENOSPC: 'QUOTA_EXCEEDED',
  EDQUOT: 'QUOTA_EXCEEDED',
  // The folder, or the disk below it, is not there: nobody knows what is in it.
  ENOENT: 'OUTCOME_UNKNOWN',
  EIO: 'OUTCOME_UNKNOWN',
};

/** Returns any error in the contract's terms. */
function translate(error: unknown): DriverError {
  if (error instanceof DriverError) return error;
  const { code = '', errno, message } = error as NodeJS.ErrnoException;
  const reason = meanings[code];
  if (!reason) return new DriverError('PROVIDER_INTERNAL', 'The driver failed; its log says where.');
  // The file system's own words name files that are new each time.
  return new DriverError(reason, errno === undefined ? message : `The cloud's folder answers ${code}.`);
}

/** Returns what goes over the wire for an error: less than 4 KiB, whatever a request has put into it. */
export function statusOf(error: unknown): { code: status; details: string; metadata: Metadata } {
  const metadata = new Metadata();
  if (error instanceof Error && error.name === 'AbortError') {
    return { code: status.CANCELLED, details: 'The call was given up.', metadata };
  }
  const { reason, message, violations } = translate(error);
  const [code, text] = [codes[reason], cut(message, 512)];
  const details = [any('ErrorInfo', { reason, domain: driverName })];
  if (violations.length > 0) {
    const cutShort = violations.slice(0, 8).map((v) => ({ field: cut(v.field, 160), description: cut(v.description, 160) }));
    details.push(any('BadRequest', { field_violations: cutShort }));
  }
  metadata.set('grpc-status-details-bin', encode('Status', { code, message: text, details }));
  return { code, details: text, metadata };
}

/** Cuts a text to so many bytes of UTF-8. JSON may hold halves of characters, which could not be sent. */
export function cut(text: string, bytes: number): string {
  const raw = Buffer.from(text);
  return raw.length <= bytes ? raw.toString() : `${raw.subarray(0, bytes - 6).toString()}…`;
}

const rpc = loadSync(fileURLToPath(new URL('../proto/google/rpc/errors.proto', import.meta.url)), { keepCase: true });

function encode(type: string, message: object): Buffer {
  return (rpc[`google.rpc.${type}`] as MessageTypeDefinition<object, object>).serialize(message);
}

function any(type: string, message: object): object {
  return { type_url: `type.googleapis.com/google.rpc.${type}`, value: encode(type, message) };
}
