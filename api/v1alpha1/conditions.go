package v1alpha1

// Conditions are set with k8s.io/apimachinery/pkg/api/meta.SetStatusCondition.
// Each type has one owner. Messages are for people and stable: a message that
// changes although nothing happened would be a write for nothing.

// Conditions of a Machine.
const (
	// ConditionReady sums up the other conditions of a Machine: True when
	// BootstrapReady, InstanceReady and NodeReady are. While it is not, reason and
	// message are those of the first that is not. On a MachineDeployment it is True when all
	// machines have the template and are available, or with the strategy OnDelete wait for
	// somebody to delete them.
	ConditionReady = "Ready"
	// ConditionBootstrapReady is True when the machine's user data can be rendered.
	ConditionBootstrapReady = "BootstrapReady"
	// ConditionInstanceReady is True when the VM runs. Its reasons are those that
	// begin with Instance, and, while something is in the way, the Driver… and
	// Cloud… reasons.
	ConditionInstanceReady = "InstanceReady"
	// ConditionNodeReady is True when the machine's Node is Ready. Until the machine is
	// Running for the first time, it is True only once all else is there that the machine
	// waits for.
	ConditionNodeReady = "NodeReady"
	// ConditionKubeletVersionMatches is there, and False, only while the Node's kubelet has
	// another version than spec.versions.kubelet. Build metadata, behind a plus, does not
	// count. Nothing is replaced for it.
	ConditionKubeletVersionMatches = "KubeletVersionMatches"
	// ConditionDrained is there only while a Machine is being deleted: True when
	// no pod that could be evicted is left on its Node, Unknown while a hook holds the drain.
	ConditionDrained = "Drained"
	// ConditionVolumesDetached is there only while a Machine is being deleted to whose Node volumes
	// of drained pods were attached when the drain ended. It is True once they are detached.
	ConditionVolumesDetached = "VolumesDetached"
)

// ConditionStalled is True on a Machine that has failed, and on a MachineDeployment whose rollout
// has exceeded its progress deadline; reason and message are those of Ready. It is absent
// otherwise. It is how tools learn that waiting is in vain. Source:
// https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
const ConditionStalled = "Stalled"

// ConditionPaused is True on any object while Millwright leaves it alone. It is
// absent otherwise.
const ConditionPaused = "Paused"

// Reasons of the condition Paused.
const (
	// ReasonPausedByAnnotation (True): the object, or one above it, carries
	// PausedAnnotation.
	ReasonPausedByAnnotation = "PausedByAnnotation"
	// ReasonReadOnly (True): the manager runs with --read-only.
	ReasonReadOnly = "ReadOnly"
	// ReasonManagedByAnother (True): another system of this API group works on the object, or on
	// Machines that it owns. The message names the finalizer or mark that shows it. Nothing is done
	// for it, deletion included, until that is gone.
	ReasonManagedByAnother = "ManagedByAnother"
)

// Conditions of a MachineSet or a MachineDeployment.
const (
	// ConditionAvailable is True when enough machines are available: all of a
	// MachineSet, for a MachineDeployment all but maxUnavailable.
	ConditionAvailable = "Available"
	// ConditionProgressing is True on a MachineDeployment while a rollout goes on,
	// and after it is complete until the next one begins.
	ConditionProgressing = "Progressing"
	// ConditionReplicaFailure is True while a Machine cannot be made, changed or
	// deleted, or machines fail; its message has the words of the first failure.
	// Absent when there is none.
	ConditionReplicaFailure = "ReplicaFailure"
)

// ConditionInUse is True on a MachineClass or Cluster while something names it. As long
// it is not deleted. Of the Secrets that it names copies are kept (ADR 18).
const ConditionInUse = "InUse"

// Reasons of the condition InUse.
const (
	// ReasonNamedByMachines (True): a MachineDeployment, MachineSet or Machine names
	// the object.
	ReasonNamedByMachines = "NamedByMachines"
	// ReasonNotNamed (False): nothing does.
	ReasonNotNamed = "NotNamed"
)

// ConditionRemediationAllowed is False on a MachineSet that has failed machines
// which are not replaced because too much of the whole fleet is unhealthy. It is
// absent otherwise. On a MachineHealthCheck it is True, or False while its unhealthy
// machines are spared.
const ConditionRemediationAllowed = "RemediationAllowed"

// Reasons of the condition RemediationAllowed.
const (
	// ReasonTooManyUnhealthy (False): of a MachineSet, more of all machines are unhealthy
	// than --max-unhealthy says; of a MachineHealthCheck, more of its own than
	// spec.maxUnhealthy or spec.unhealthyRange says. It ends by itself.
	ReasonTooManyUnhealthy = "TooManyUnhealthy"
	// ReasonTooFewUnhealthy (False): fewer machines of a MachineHealthCheck are unhealthy
	// than spec.unhealthyRange says.
	ReasonTooFewUnhealthy = "TooFewUnhealthy"
	// ReasonCheckInvalid (False): a field of the MachineHealthCheck, which the message names,
	// cannot be read. It checks nothing.
	ReasonCheckInvalid = "CheckInvalid"
	// ReasonWithinLimits (True): what is unhealthy is replaced.
	ReasonWithinLimits = "WithinLimits"
)

// Conditions of a Machine that health checks set. A machine that no check finds unhealthy has
// neither. The names are Cluster API's.
const (
	// ConditionHealthCheckSucceeded is False while a health check finds the machine
	// unhealthy.
	ConditionHealthCheckSucceeded = "HealthCheckSucceeded"
	// ConditionOwnerRemediated is False with reason WaitingForRemediation while the
	// machine's set is to replace it for a health check, and Unknown while it is spared.
	ConditionOwnerRemediated = "OwnerRemediated"
)

// Reasons of the condition HealthCheckSucceeded, all False.
const (
	// ReasonUnhealthyNode: the Node has had a condition of the check for its timeout.
	ReasonUnhealthyNode = "UnhealthyNode"
	// ReasonUnhealthyMachine: the Machine has had one.
	ReasonUnhealthyMachine = "UnhealthyMachine"
	// ReasonNodeStartupTimeout: the VM runs and has had no Node for the check's
	// nodeStartupTimeout.
	ReasonNodeStartupTimeout = "NodeStartupTimeout"
	// ReasonRemediationRequested: the annotation RemediateMachineAnnotation is there.
	ReasonRemediationRequested = "RemediationRequested"
)

// Reasons of the condition OwnerRemediated, but for TooManyUnhealthy and TooFewUnhealthy.
const (
	// ReasonWaitingForRemediation (False): the machine's set replaces it, within
	// spec.remediation of its set and --max-unhealthy.
	ReasonWaitingForRemediation = "WaitingForRemediation"
	// ReasonWaitingForObservation (Unknown): the machine was found unhealthy before, and this
	// manager, or its clock of timeouts, has just begun, or its driver is away: see ADR 36.
	ReasonWaitingForObservation = "WaitingForObservation"
	// ReasonRemediationSkipped (Unknown): the annotation SkipRemediationAnnotation is there.
	ReasonRemediationSkipped = "RemediationSkipped"
	// ReasonNoMachineSet (Unknown): the machine is no MachineSet's, so nobody would replace it.
	ReasonNoMachineSet = "NoMachineSet"
)

// ConditionFrozen is True on a MachineSet that lacks machines and gets none, since
// there are far more machines than there may be. It is absent otherwise.
const ConditionFrozen = "Frozen"

// ReasonOvershoot (True) is the reason of Frozen: there are more machines than replicas, surge and
// a margin. All sets of the MachineDeployment count together, or a set that is alone; machines on
// their way out count as well.
const ReasonOvershoot = "Overshoot"

// ReasonMachineReady is the reason of Ready when it is True. While it is not, Ready
// has the reason of the condition that holds it up.
const ReasonMachineReady = "MachineReady"

// Reasons of the condition BootstrapReady.
const (
	// ReasonBootstrapRendered (True): the user data can be rendered.
	ReasonBootstrapRendered = "BootstrapRendered"
	// ReasonBootstrapTokenCreated (True): the user data can be rendered, and a bootstrap
	// token went with it, or is about to. It is written before the cloud is first asked.
	ReasonBootstrapTokenCreated = "TokenCreated"
	// ReasonBootstrapTokenDeleted (True): the user data has served. The machine's Node
	// is there, and its bootstrap token was deleted.
	ReasonBootstrapTokenDeleted = "TokenDeleted"
	// ReasonBootstrapTokenNotNeeded (True): the machine's user data is the user's own and has
	// no place for a bootstrap token. There is none, and nobody waits for one. It is False
	// where that user data has gone before a create that is to be repeated.
	ReasonBootstrapTokenNotNeeded = "TokenNotNeeded"
	// ReasonKubeletTooOld (True): the user data can be rendered, for a kubelet that
	// is further behind the API server than Kubernetes supports.
	ReasonKubeletTooOld = "KubeletTooOld"
	// ReasonBootstrapInvalid (False): the spec cannot be turned into user data, or
	// asks for a kubelet that is newer than the API server.
	ReasonBootstrapInvalid = "BootstrapInvalid"
)

// Reasons of the condition InstanceReady that say what the VM does.
const (
	// ReasonInstanceCreating (False): written before the cloud is first asked;
	// there may or may not be a VM.
	ReasonInstanceCreating = "Creating"
	// ReasonInstanceBooting (False): the cloud has accepted the VM, it does not run yet.
	ReasonInstanceBooting = "Booting"
	// ReasonInstanceRunning (True): the VM runs.
	ReasonInstanceRunning = "Running"
	// ReasonInstanceUpdating (False): the VM is being changed in place.
	ReasonInstanceUpdating = "Updating"
	// ReasonInstanceStopped (False): the VM exists and is switched off, by
	// somebody else, or the cloud says that it broke after it had run. It is not
	// replaced for that alone.
	ReasonInstanceStopped = "Stopped"
	// ReasonInstanceFailed (False): the cloud has given the VM up; the machine is
	// replaced.
	ReasonInstanceFailed = "Failed"
	// ReasonInstanceMissing (False): the VM was there and is gone.
	ReasonInstanceMissing = "Missing"
	// ReasonInstanceDeleting (False): the cloud was asked to delete the VM.
	ReasonInstanceDeleting = "Deleting"
	// ReasonInstanceDeleted (False): nothing of the machine is left in the cloud.
	ReasonInstanceDeleted = "Deleted"
	// ReasonWaitingForPreTerminateHooks (False): the Machine is being deleted, and annotations
	// with PreTerminateHookAnnotationPrefix, which the message names, hold the VM. So do those
	// with PreDrainHookAnnotationPrefix that come when the drain is over.
	ReasonWaitingForPreTerminateHooks = "WaitingForPreTerminateHooks"
	// ReasonInstanceForgotten (False): the Machine is being deleted and carries
	// ForgetAnnotation. The message lists what it leaves behind in the cloud.
	ReasonInstanceForgotten = "Forgotten"
)

// Reasons of the condition InstanceReady that say whose VM it is. For such a machine
// nothing is created, no Node is touched, and nothing is replaced.
const (
	// ReasonNotAdopted (False or Unknown): spec.providerID does not come from
	// Millwright, and the driver, asked by machineUID, namespace and name, has not
	// confirmed it: it has not answered yet, or knows no such VM.
	ReasonNotAdopted = "NotAdopted"
	// ReasonProviderIDConflict (False): the driver, asked by machineUID, namespace
	// and name, names another VM than spec.providerID.
	ReasonProviderIDConflict = "ProviderIDConflict"
	// ReasonMachineUIDTaken (False): another Machine has the same machineUID, and
	// had it first.
	ReasonMachineUIDTaken = "MachineUIDTaken"
)

// Reasons of the condition InstanceReady that lie between Millwright and the
// driver. None of them is the machine's fault: it is not failed or replaced.
const (
	// ReasonDriverNotFound (False): no driver is registered under the name in
	// spec.providerSpec.value.cloudProvider.
	ReasonDriverNotFound = "DriverNotFound"
	// ReasonMachineClassNotFound (False): there is no MachineClass of the name in
	// spec.providerSpec.valueFrom.
	ReasonMachineClassNotFound = "MachineClassNotFound"
	// ReasonClusterNotFound (False): there is no Cluster of the name in
	// spec.clusterRef.
	ReasonClusterNotFound = "ClusterNotFound"
	// ReasonReferenceUnresolved (False): a Secret or ConfigMap that the machine is
	// made with, or the key in it, is not there, or Millwright may not read it. It
	// goes on by itself.
	ReasonReferenceUnresolved = "ReferenceUnresolved"
	// ReasonDriverUnavailable (Unknown or False): the driver does not answer now.
	ReasonDriverUnavailable = "DriverUnavailable"
	// ReasonOutcomeUnknown (Unknown): a call was sent and its answer lost; the
	// same call is repeated until it is known what became of it.
	ReasonOutcomeUnknown = "OutcomeUnknown"
)

// Reasons of the condition InstanceReady that the driver reports, each the
// CamelCase form of a reason in the driver contract. Those that a driver reports
// and that stand not here are shown in the same form.
const (
	// ReasonSpecInvalid: the cloudProviderSpec is wrong. Final for this machine,
	// and its MachineSet makes no more until the template changes.
	ReasonSpecInvalid = "SpecInvalid"
	// ReasonRequestTooLarge: spec and user data are larger than the driver takes.
	// Final, like ReasonSpecInvalid.
	ReasonRequestTooLarge = "RequestTooLarge"
	// ReasonDependencyNotFound: something that the spec names, such as a flavor or
	// an image, is not there; it may yet appear.
	ReasonDependencyNotFound = "DependencyNotFound"
	// ReasonSpecConflict: the cloud holds a VM of this machine that was made from
	// another spec. Final.
	ReasonSpecConflict = "SpecConflict"
	// ReasonNameTaken: a VM that is not this machine's has its name. Final; the
	// stranger is neither adopted nor deleted.
	ReasonNameTaken = "NameTaken"
	// ReasonCredentialsInvalid: the cloud refuses the credentials. True where the VM
	// was seen to run before.
	ReasonCredentialsInvalid = "CredentialsInvalid"
	// ReasonPermissionMissing: the credentials may not do what is needed. True where
	// the VM was seen to run before.
	ReasonPermissionMissing = "PermissionMissing"
	// ReasonQuotaExceeded: the project's quota is used up. Tried again slowly.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonCapacityUnavailable: the cloud has no room for such a VM now.
	ReasonCapacityUnavailable = "CapacityUnavailable"
	// ReasonRateLimited: the cloud asks for fewer calls.
	ReasonRateLimited = "RateLimited"
	// ReasonDeletionProtected: somebody has protected the VM against deletion.
	ReasonDeletionProtected = "DeletionProtected"
	// ReasonVolumesAttached: the VM cannot go while volumes are attached to it.
	ReasonVolumesAttached = "VolumesAttached"
	// ReasonAccountChanged: the credentials now lead to another account, in which
	// every VM would look gone. Nothing is replaced or deleted. True where the VM
	// was seen to run before.
	ReasonAccountChanged = "AccountChanged"
	// ReasonStaleEpoch: the driver has already served a younger leader.
	ReasonStaleEpoch = "StaleEpoch"
	// ReasonOperationPending: the cloud still works on this machine.
	ReasonOperationPending = "OperationPending"
	// ReasonProviderInternal: the driver or its cloud has an error of its own.
	ReasonProviderInternal = "ProviderInternal"
	// ReasonDataLoss: the driver no longer knows what belongs to this machine. It
	// is left alone until somebody has looked.
	ReasonDataLoss = "DataLoss"
)

// Reasons of the condition NodeReady.
const (
	// ReasonNodeReady (True): the Node is Ready.
	ReasonNodeReady = "NodeReady"
	// ReasonNodeNotReady (False): the Node is there and says that it is not Ready.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonNodeUnknown (Unknown): the Node has stopped reporting.
	ReasonNodeUnknown = "NodeUnknown"
	// ReasonNodeUninitialized (False): the Node is Ready, and has the taint
	// node.cloudprovider.kubernetes.io/uninitialized, which the provider's cloud controller
	// takes away. The machine is not Running before.
	ReasonNodeUninitialized = "NodeUninitialized"
	// ReasonWaitingForDaemonSets (False): the Node is Ready, and pods of critical DaemonSets,
	// which the message names, do not run there yet. The machine is not Running before.
	// Unknown while nobody can tell.
	ReasonWaitingForDaemonSets = "WaitingForDaemonSets"
	// ReasonWaitingForNode (False): the VM has not registered a Node yet.
	ReasonWaitingForNode = "WaitingForNode"
	// ReasonNodeMissing (False): the machine had a Node and has none now.
	ReasonNodeMissing = "NodeMissing"
	// ReasonJoinTimeout (False): the VM did not become a Ready Node within
	// spec.nodeStartupTimeout, or its Node is gone and did not come back within it.
	// Final: the machine is Failed and its MachineSet replaces it. Where the driver reads
	// consoles, the message ends with the last lines of the VM's.
	ReasonJoinTimeout = "JoinTimeout"
	// ReasonTokenMissing (False): the bootstrap token is gone before the VM has joined. A VM whose
	// kubelet has no certificate yet never joins: the machine is Failed, and its MachineSet
	// replaces it. Where nobody knows of a VM, the driver is asked first whether there is one.
	ReasonTokenMissing = "TokenMissing"
	// ReasonNodeConflict (False): more than one Node, or one that is another
	// Machine's, fits this machine.
	ReasonNodeConflict = "NodeConflict"
	// ReasonProviderIDUnknown (False): the machine's Node has joined with a providerID that the
	// driver does not know its VM by. The machine waits, and no timeout of a join replaces it:
	// its replacement would join with such an ID, too.
	ReasonProviderIDUnknown = "ProviderIDUnknown"
)

// ReasonKubeletVersionDiffers (False), of the condition KubeletVersionMatches: the message
// names both versions.
const ReasonKubeletVersionDiffers = "KubeletVersionDiffers"

// Reasons of the condition Drained.
const (
	// ReasonWaitingForPreDrainHooks (Unknown): annotations with PreDrainHookAnnotationPrefix,
	// which the message names, hold the drain: it does not begin, or does not go on.
	ReasonWaitingForPreDrainHooks = "WaitingForPreDrainHooks"
	// ReasonDraining (False): pods are being evicted. Where those with volumes go one at a time,
	// the message names what the next one waits for.
	ReasonDraining = "Draining"
	// ReasonBlockedByPodDisruptionBudget (False): a PodDisruptionBudget, which the
	// message names, does not allow the next eviction yet.
	ReasonBlockedByPodDisruptionBudget = "BlockedByPodDisruptionBudget"
	// ReasonEvictionRefused (False): the API server refuses to evict pods, which the
	// message names, for another reason than a PodDisruptionBudget: they are in a
	// namespace that is being deleted, or an admission webhook refuses.
	ReasonEvictionRefused = "EvictionRefused"
	// ReasonDrainTimedOut (False): spec.nodeDrainTimeout is over; the VM goes with
	// the pods that the message names.
	ReasonDrainTimedOut = "DrainTimedOut"
	// ReasonDrainSkipped (False): the Machine carries ExcludeNodeDrainingAnnotation; the VM goes
	// with the pods that are on its Node.
	ReasonDrainSkipped = "DrainSkipped"
	// ReasonDrained (True): no pod that could be evicted is left.
	ReasonDrained = "Drained"
	// ReasonNodeUnreachable (True): the Node's kubelet has not reported for long
	// enough while others did, or its VM is gone: its terminating pods cannot be
	// waited for.
	ReasonNodeUnreachable = "NodeUnreachable"
	// ReasonNoNode (True): there is no Node to drain. NodeReady has it, too, where machines need
	// no Nodes: the manager runs with --workload-kubeconfig=none.
	ReasonNoNode = "NoNode"
)

// Reasons of the condition VolumesDetached.
const (
	// ReasonWaitingForVolumes (False): volumes of drained pods, which the message names, are
	// attached to the Node; the VM stays until they are detached.
	ReasonWaitingForVolumes = "WaitingForVolumes"
	// ReasonVolumeDetachTimedOut (False): spec.nodeVolumeDetachTimeout is over; the VM goes
	// with the volumes that the message names.
	ReasonVolumeDetachTimedOut = "VolumeDetachTimedOut"
	// ReasonVolumeWaitSkipped (False): the Machine carries
	// ExcludeWaitForNodeVolumeDetachAnnotation; the VM goes with the volumes that the message
	// names.
	ReasonVolumeWaitSkipped = "VolumeWaitSkipped"
	// ReasonDetached (True): the volumes that drained pods used are detached.
	ReasonDetached = "Detached"
)

// Reasons of the condition Available.
const (
	// ReasonMinimumMachinesAvailable (True): enough machines are available.
	ReasonMinimumMachinesAvailable = "MinimumMachinesAvailable"
	// ReasonMinimumMachinesUnavailable (False): too few machines are available.
	ReasonMinimumMachinesUnavailable = "MinimumMachinesUnavailable"
)

// Reasons of the condition Ready of a MachineDeployment. Others are those of Progressing.
const (
	// ReasonAllMachinesAvailable (True): all machines have the template and are available.
	ReasonAllMachinesAvailable = "AllMachinesAvailable"
	// ReasonMachinesUnavailable (False): no rollout goes on, and machines are missing, not
	// available, or being deleted.
	ReasonMachinesUnavailable = "MachinesUnavailable"
)

// Reasons of the condition Progressing. They are those of a Deployment, in terms
// of machines.
const (
	// ReasonNewMachineSetCreated (True): a MachineSet for the template was made.
	ReasonNewMachineSetCreated = "NewMachineSetCreated"
	// ReasonFoundExistingMachineSet (True): the template is that of a MachineSet
	// from before, which is used again.
	ReasonFoundExistingMachineSet = "FoundExistingMachineSet"
	// ReasonMachineSetUpdated (True): the rollout goes on; the message says what
	// it waits for.
	ReasonMachineSetUpdated = "MachineSetUpdated"
	// ReasonNewMachineSetAvailable (True): the rollout is complete.
	ReasonNewMachineSetAvailable = "NewMachineSetAvailable"
	// ReasonMachineSetCreateFailed (False): no MachineSet could be made for the
	// template.
	ReasonMachineSetCreateFailed = "MachineSetCreateFailed"
	// ReasonProgressDeadlineExceeded (False): the rollout has not got on for
	// spec.progressDeadlineSeconds; the message says what it waits for.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonDeletionAwaited (True): the strategy is OnDelete, and machines of an old
	// template are there until somebody deletes them.
	ReasonDeletionAwaited = "DeletionAwaited"
	// ReasonDeploymentPaused (Unknown): spec.paused is true.
	ReasonDeploymentPaused = "DeploymentPaused"
	// ReasonDeploymentResumed (Unknown): spec.paused has just become false.
	ReasonDeploymentResumed = "DeploymentResumed"
)

// Reasons of the condition ReplicaFailure.
const (
	// ReasonMachineCreationFailed (True): the API server refused a Machine.
	ReasonMachineCreationFailed = "MachineCreationFailed"
	// ReasonMachineDeletionFailed (True): a Machine could not be deleted.
	ReasonMachineDeletionFailed = "MachineDeletionFailed"
	// ReasonMachineUpdateFailed (True): a Machine could not be brought up to the
	// template's labels, annotations, taints or timeouts.
	ReasonMachineUpdateFailed = "MachineUpdateFailed"
	// ReasonMachinesFailed (True): Machines of the set are Failed or cannot be
	// created in the cloud.
	ReasonMachinesFailed = "MachinesFailed"
	// ReasonTemplateInvalid (True): the driver refuses the template's
	// cloudProviderSpec. No Machine is made until the template changes, or the
	// MachineClass or Cluster that it inherits from.
	ReasonTemplateInvalid = "TemplateInvalid"
)
