// MachineService: the contract, mapped to the cloud. Nothing that a call needs is kept between calls: any number of
// these drivers can serve one folder, and each can be killed at any time.

import { type handleUnaryCall } from '@grpc/grpc-js';
import { sha256, type Account, type Cloud, type VM } from './cloud.js';
import { DriverError, driverName } from './errors.js';
import type { Machine } from './gen/millwright/driver/v1alpha1/Machine.js';
import type { MachineServiceHandlers as Handlers } from './gen/millwright/driver/v1alpha1/MachineService.js';
import type { Complete } from './requests.js';
import { parseObject, parseSpec, type Spec } from './spec.js';

type Request<Method extends string> = Handlers[Method] extends handleUnaryCall<infer Request, infer _> ? Complete<Request> : never;
type Answer<Method extends string> = Handlers[Method] extends handleUnaryCall<infer _, infer Answer> ? Promise<Answer> : never;
type MachineRequest = Request<'CreateMachine'> | Request<'GetMachineStatus'> | Request<'DeleteMachine'>;

export const providerIdPrefix = `${driverName}:///`;

const maxPage = 500;

export class Machines {
  /** A VM that is on its way is worth another look after pollAfter ms. */
  constructor(private readonly cloud: Cloud, private readonly pollAfter: number) {}

  async create(request: Request<'CreateMachine'>, signal: AbortSignal): Answer<'CreateMachine'> {
    const spec = parseSpec(request.provider.provider_spec);
    const account = await this.open(request);
    signal.throwIfAborted();
    const { namespace, name, uid } = request.machine;
    const vm = await account.create(idOf(request), {
      cluster: request.meta.cluster_uid, uid, namespace, name, ...spec, tags: request.tags, createTime: Date.now(),
      // A real driver hands user data to the cloud. Here nobody would read it, and secrets do not go to disk.
      userDataHash: sha256(request.user_data),
    });
    checkName(vm, request);
    checkSpec(vm, spec);
    return { machine: this.describe(vm, account) };
  }

  async get(request: Request<'GetMachineStatus'>): Answer<'GetMachineStatus'> {
    const account = await this.open(request);
    const vm = await account.get(idOf(request));
    if (!vm || vm.state === 'gone') throw new DriverError('MACHINE_NOT_FOUND', 'The cloud knows no vm of this machine.');
    checkName(vm, request);
    return { machine: this.describe(vm, account) };
  }

  async delete(request: Request<'DeleteMachine'>, signal: AbortSignal): Answer<'DeleteMachine'> {
    const account = await this.open(request);
    const vm = await account.get(idOf(request));
    if (vm) checkName(vm, request);
    signal.throwIfAborted();
    await account.delete(idOf(request));
    const left = await account.get(idOf(request));
    return left && left.state !== 'gone' ? { machine: this.describe(left, account) } : {};
  }

  /** Pages follow the order of IDs: a page token says all there is to know, whichever driver gets it. */
  async list(request: Request<'ListMachines'>): Answer<'ListMachines'> {
    const token = /^(?:after:([0-9a-f]{32}))?$/.exec(request.page_token);
    if (!token) throw new DriverError('PAGE_TOKEN_EXPIRED', 'The page token is unknown.');
    const after = token[1] ?? '';
    const account = await this.cloud.open(tokenOf(request));
    const size = Math.min(request.page_size || maxPage, maxPage);
    const page: VM[] = [];
    for (const id of (await account.ids()).filter((one) => one > after)) {
      const vm = await account.get(id);
      if (!vm || vm.state === 'gone' || vm.cluster !== request.meta.cluster_uid) continue;
      page.push(vm);
      if (page.length > size) break;
    }
    const machines = page.slice(0, size).map((vm) => this.describe(vm, account));
    return { machines, next_page_token: page.length > size ? `after:${page[size - 1]?.id}` : '' };
  }

  /** Opens the account of the token. In another account than the machine's, everything would look gone. */
  private async open(request: MachineRequest): Promise<Account> {
    const account = await this.cloud.open(tokenOf(request));
    // What core was told last; nothing else depends on it, so that it may be lost.
    const made = parseObject(request.last_known_state)?.account ?? account.name;
    if (made === account.name) return account;
    throw new DriverError('ACCOUNT_CHANGED', `The token opens the account ${account.name}, the machine was made in ${made}.`);
  }

  private describe(vm: VM, account: Account): Machine {
    const machine: Machine = {
      ref: { namespace: vm.namespace, name: vm.name, uid: vm.uid },
      cluster_uid: vm.cluster,
      provider_id: providerIdPrefix + vm.id,
      addresses: [{ type: 'ADDRESS_TYPE_INTERNAL_IP', legacy_type: 'InternalIP', address: `10.${[...Buffer.from(vm.id, 'hex').subarray(0, 3)].join('.')}` }],
      last_known_state: Buffer.from(JSON.stringify({ account: account.name })),
      create_time: inSeconds(vm.createTime),
    };
    const operation = { poll_after: inSeconds(this.pollAfter) };
    switch (vm.state) {
      case 'building':
        return { ...machine, state: 'MACHINE_STATE_CREATING', operation };
      case 'running':
        return { ...machine, state: 'MACHINE_STATE_RUNNING' };
      case 'stopped':
        return { ...machine, state: 'MACHINE_STATE_STOPPED' };
      case 'deleting':
        return { ...machine, state: 'MACHINE_STATE_DELETING', operation };
      case 'failed':
        return { ...machine, state: 'MACHINE_STATE_FAILED', reason: 'VMFailed', message: vm.fault };
      case 'gone':
        // A uid gets one VM in its life, and has had it: a create that comes late makes no other.
        return { ...machine, state: 'MACHINE_STATE_FAILED', reason: 'VMGone', message: 'The vm of this machine was deleted.' };
    }
  }
}

/** The VM's ID follows from the machine's uid: whoever asks for it, and however often, means the same VM. */
function idOf({ meta, machine }: MachineRequest): string {
  return sha256(JSON.stringify([meta.cluster_uid, machine.uid])).slice(0, 32);
}

/** A token from a Secret goes before one in the spec. */
function tokenOf({ provider }: Pick<MachineRequest, 'provider'>): Uint8Array | undefined {
  const written = parseObject(provider.provider_spec)?.token;
  return provider.secrets.token ?? (typeof written === 'string' ? Buffer.from(written) : undefined);
}

/** Refuses a VM that is another machine's. */
function checkName(vm: VM, { meta, machine: { namespace, name, uid } }: MachineRequest): void {
  if (vm.cluster === meta.cluster_uid && vm.uid === uid && vm.namespace === namespace && vm.name === name) return;
  throw new DriverError('NAME_TAKEN', `The vm ${vm.id} belongs to the machine ${vm.namespace}/${vm.name}.`);
}

/** Refuses a spec that the VM was not made of. Nothing else is compared: secrets and user data rotate. */
function checkSpec(vm: VM, want: Spec): void {
  const differ = (['size', 'image', 'zone'] as const).filter((field) => vm[field] !== want[field]);
  if (differ.length === 0) return;
  const violations = differ.map((field) => ({ field, description: `The vm has ${vm[field]}, which cannot be changed.` }));
  throw new DriverError('SPEC_CONFLICT', 'A vm of this machine exists and differs from the spec.', violations);
}

function inSeconds(ms: number): { seconds: number; nanos: number } {
  return { seconds: Math.floor(ms / 1000), nanos: (ms % 1000) * 1e6 };
}
