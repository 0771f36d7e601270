// A unix socket in the file system: it stays behind when the process that made it is killed.

import { lstat, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { ServerCredentials, type Server } from '@grpc/grpc-js';
import { found, hasCode } from './cloud.js';

/** Has the server listen on unix:///path. It takes over a socket that nobody serves any more, never one that is alive. */
export async function listen(server: Server, endpoint: string): Promise<void> {
  const path = endpoint.replace(/^unix:\/\//, '');
  if (path === endpoint || !path.startsWith('/') || Buffer.byteLength(path) > 99) {
    // There is no plaintext TCP: requests hold credentials.
    throw new Error('set --endpoint, or MILLWRIGHT_ENDPOINT, to unix:///path, with a path of at most 99 bytes');
  }
  const left = await found(lstat(path));
  if (left && !left.isSocket()) throw new Error(`${path} is not a socket`);
  if (left && await isServed(path)) throw new Error(`another process serves ${path}`);
  await rm(path, { force: true });
  // Mode 0660 from the first moment on: nobody but the owner and the group may ever connect.
  const mask = process.umask(0o117);
  try {
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(endpoint, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve()));
    });
  } finally {
    process.umask(mask);
  }
}

function isServed(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = connect(path, () => resolve(true)).on('error', (error) => {
      if (hasCode(error, 'ECONNREFUSED', 'ENOENT')) resolve(false);
      else reject(error);
    });
    probe.unref();
  });
}
