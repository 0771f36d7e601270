// The cloud: a folder, which any number of drivers may share. It stands for the client of a real cloud, and knows
// nothing of Millwright's contract.
//
//   DIR/tokens/SHA256                 names the account that the token with this hash opens
//   DIR/accounts/ACCOUNT/ID/vm.json   a VM as it was made; written once
//   DIR/accounts/ACCOUNT/ID/stopped   the VM is stopped: touch it, remove it
//   DIR/accounts/ACCOUNT/ID/failed    the VM has failed; the text in it says why
//   DIR/accounts/ACCOUNT/ID/deleted   the VM is on its way out, or gone; its ID is never used again

import { createHash, randomUUID } from 'node:crypto';
import { access, mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What a VM is made of; none of it ever changes. */
export interface Facts {
  cluster: string;
  uid: string;
  namespace: string;
  name: string;
  size: string;
  image: string;
  zone: string;
  tags: Record<string, string>;
  userDataHash: string;
  createTime: number; // ms since 1970
}

/** A VM as it is now; fault says why it has failed. */
export interface VM extends Facts {
  id: string;
  state: 'building' | 'running' | 'stopped' | 'failed' | 'deleting' | 'gone';
  fault: string;
}

/** The cloud's own errors. Everything else that fails does so with the file system's. */
export class CloudError extends Error {
  constructor(readonly code: 'UNAUTHORIZED' | 'BUSY', message: string) { super(message); }
}

export class Cloud {
  /** VMs take latency ms to come up, and as long to go. */
  constructor(private readonly dir: string, private readonly latency: number) {}

  /** Opens the account of a token; without a token that is "default". */
  async open(token?: Uint8Array): Promise<Account> {
    const name = token ? await found(readFile(join(this.dir, 'tokens', sha256(token)), 'utf8')) : 'default';
    if (name === undefined) throw new CloudError('UNAUTHORIZED', 'The token opens no account.');
    const account = new Account(name.trim(), join(this.dir, 'accounts', name.trim()), this.latency);
    // A folder that is not there (not mounted, say) must not look like an account without VMs.
    await access(account.dir);
    return account;
  }
}

export class Account {
  constructor(readonly name: string, readonly dir: string, private readonly latency: number) {}

  /** Makes the VM of this ID, unless there is one or was one: that one is then the answer. */
  async create(id: string, facts: Facts): Promise<VM> {
    const known = await this.get(id);
    if (known) return known;
    // Made aside and renamed, a VM is there as a whole or not at all. It is there once, whoever else makes it at the
    // same time: no folder is renamed onto one that holds something.
    const draft = join(this.dir, `${id}.${randomUUID()}`);
    try {
      await mkdir(draft);
      await writeFile(join(draft, 'vm.json'), JSON.stringify(facts));
      await rename(draft, join(this.dir, id));
    } catch (error) {
      if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
    const made = await this.get(id);
    if (!made) throw new CloudError('BUSY', 'The vm came and went.');
    return made;
  }

  /** Returns the VM of this ID, also one that is gone; undefined where there never was one. */
  async get(id: string): Promise<VM | undefined> {
    const born = await found(readFile(join(this.dir, id, 'vm.json'), 'utf8'));
    if (born === undefined) return undefined;
    const facts = JSON.parse(born) as Facts;
    const fault = await found(readFile(join(this.dir, id, 'failed'), 'utf8'));
    return { ...facts, id, fault: fault?.trim() ?? '', state: await this.state(id, facts, fault !== undefined) };
  }

  private async state(id: string, facts: Facts, failed: boolean): Promise<VM['state']> {
    const deleted = await found(stat(join(this.dir, id, 'deleted')));
    if (deleted) return Date.now() < deleted.mtimeMs + this.latency ? 'deleting' : 'gone';
    if (failed) return 'failed';
    if (await found(stat(join(this.dir, id, 'stopped')))) return 'stopped';
    return Date.now() < facts.createTime + this.latency ? 'building' : 'running';
  }

  /** Returns the IDs of all VMs that are or were, in order. */
  async ids(): Promise<string[]> {
    return (await readdir(this.dir)).filter((name) => /^[0-9a-f]{32}$/.test(name)).sort();
  }

  /** Deletes the VM of this ID, and what creates that were killed have left of it. Deleting nothing is fine. */
  async delete(id: string): Promise<void> {
    const drafts = (await readdir(this.dir)).filter((name) => name.startsWith(`${id}.`));
    await Promise.all(drafts.map((name) => rm(join(this.dir, name), { recursive: true, force: true })));
    await writeFile(join(this.dir, id, 'deleted'), '', { flag: 'wx' }).catch((error: unknown) => {
      if (!hasCode(error, 'EEXIST', 'ENOENT')) throw error;
    });
  }
}

export const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

/** Returns what was read, undefined where there is no such file. */
export async function found<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}
