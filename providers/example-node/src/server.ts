// Which service answers what.

import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Server, status, type handleUnaryCall, type ServiceDefinition, type UntypedServiceImplementation } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { Cloud } from './cloud.js';
import { driverName, statusOf } from './errors.js';
import { frames, log } from './log.js';
import { Machines, providerIdPrefix } from './machines.js';
import { checked, maxUserData, type Complete, type Shape } from './requests.js';
import { completeSpec, findViolations, parseSpec, schema, templateOf } from './spec.js';
import type { GetCapabilitiesResponse } from './gen/millwright/driver/v1alpha1/GetCapabilitiesResponse.js';
import type { IdentityServiceHandlers } from './gen/millwright/driver/v1alpha1/IdentityService.js';
import type { MachineServiceHandlers } from './gen/millwright/driver/v1alpha1/MachineService.js';
import type { ProviderSpecServiceHandlers } from './gen/millwright/driver/v1alpha1/ProviderSpecService.js';
import type { GetPluginInfoResponse } from './gen/millwright/handshake/v1/GetPluginInfoResponse.js';
import type { HandshakeServiceHandlers } from './gen/millwright/handshake/v1/HandshakeService.js';

const files = [
  'millwright/handshake/v1/handshake', 'millwright/driver/v1alpha1/identity', 'millwright/driver/v1alpha1/machine',
  'millwright/driver/v1alpha1/provider_spec', 'grpc/health/v1/health',
];
const ownProtoDir = fileURLToPath(new URL('../proto', import.meta.url));

const { version } = createRequire(import.meta.url)('../package.json') as { version: string };

const plugin: GetPluginInfoResponse = { name: driverName, vendor_version: version, api_packages: ['millwright.driver.v1alpha1'], contract_revision: 2 };

const capabilities: GetCapabilitiesResponse = {
  // Methods that are not implemented below answer UNIMPLEMENTED, as features that are not announced have to.
  features: [
    'FEATURE_LIST', 'FEATURE_PROVIDER_SPEC_SCHEMA', 'FEATURE_PROVIDER_SPEC_DEFAULT', 'FEATURE_PROVIDER_SPEC_VALIDATE',
    'FEATURE_INSTANCE_TEMPLATE',
  ],
  // Each limit is set on purpose: what it means to leave it out stands on it in the contract.
  limits: { max_concurrent_requests: 64, max_user_data_bytes: maxUserData, create_settle: { seconds: 5 }, tags: {} },
  provider_id_prefix: providerIdPrefix,
};

/** Returns a server that listens nowhere yet. */
export function newServer(cloud: Cloud, protoDir: string, latency: number): Server {
  const definitions = loadSync(files.map((file) => `${file}.proto`), {
    includeDirs: [protoDir, ownProtoDir], keepCase: true, longs: String, enums: String, defaults: true,
  });
  const server = new Server({ 'grpc.max_receive_message_length': 8 << 20, 'grpc.max_send_message_length': 8 << 20 });
  const serve = (service: string, methods: UntypedServiceImplementation): void =>
    server.addService(definitions[service] as ServiceDefinition, methods);
  serve('millwright.handshake.v1.HandshakeService', { GetPluginInfo: unary(() => plugin) } satisfies Partial<HandshakeServiceHandlers>);
  serve('millwright.driver.v1alpha1.IdentityService', {
    GetCapabilities: unary(() => capabilities),
    Probe: unary(() => ({ ready: true })),
  } satisfies Partial<IdentityServiceHandlers>);
  const machines = new Machines(cloud, latency);
  serve('millwright.driver.v1alpha1.MachineService', {
    CreateMachine: unary((request, signal) => machines.create(request, signal)),
    GetMachineStatus: unary((request) => machines.get(request)),
    DeleteMachine: unary((request, signal) => machines.delete(request, signal)),
    ListMachines: unary((request) => machines.list(request)),
  } satisfies Partial<MachineServiceHandlers>);
  serve('millwright.driver.v1alpha1.ProviderSpecService', {
    GetProviderSpecSchema: unary(() => ({ json_schema: Buffer.from(JSON.stringify(schema)) })),
    DefaultProviderSpec: unary(({ provider }) => ({ provider_spec: completeSpec(provider.provider_spec) })),
    ValidateProviderSpec: unary(({ provider }) => ({ violations: findViolations(provider.provider_spec) })),
    GetInstanceTemplate: unary(({ provider }) => ({ template: templateOf(parseSpec(provider.provider_spec)) })),
  } satisfies Partial<ProviderSpecServiceHandlers>);
  serve('grpc.health.v1.Health', { Check: unary(() => ({ status: 'SERVING' })) });
  return server;
}

/** Makes a gRPC method of a function: it is called with requests whose shape holds, and may throw. */
function unary<Request extends object, Answer>(
  answer: (request: Complete<Request>, signal: AbortSignal) => Answer | Promise<Answer>,
): handleUnaryCall<Request, Answer> {
  return async (call, callback) => {
    const cancelled = new AbortController();
    call.on('cancelled', () => cancelled.abort());
    try {
      const answered = await answer(checked(call.request), cancelled.signal);
      report(call.getPath(), call.request, status.OK);
      callback(null, answered);
    } catch (error) {
      const failed = statusOf(error);
      report(call.getPath(), call.request, failed.code, error);
      callback(failed);
    }
  };
}

/** Logs a call that may have changed the cloud, or that shows a mistake of this driver's. */
function report(method: string, request: Shape, code: status, error?: unknown): void {
  const mistake = code === status.INTERNAL;
  if (mistake || /(Create|Delete)Machine$/.test(method)) {
    const { namespace, name, uid } = request.machine ?? {};
    const more = mistake ? { at: frames(error) } : {};
    log('call', { method, code: status[code], request: request.meta?.request_id, namespace, name, uid, ...more });
  }
}
