package v1alpha1

// MachineFinalizer keeps a Machine until nothing of it is left: no pod that could
// be evicted, no VM, no Node. Set when the Machine is created.
const MachineFinalizer = "machine.cluster.k8s.io/millwright"

// InUseFinalizer keeps a MachineClass or Cluster as long as a MachineDeployment,
// MachineSet or Machine names it, and the Secrets that it names as long.
const InUseFinalizer = "cluster.k8s.io/millwright-in-use"

// What outlives the manager: the CRDs, and the namespaces and admission policies
// that are shipped with them.
const (
	// KeptLabel, with the value "true", is on each namespace that holds what VMs are
	// deleted with. A policy refuses to delete it, like our CRDs, without
	// AllowDeletionAnnotation.
	KeptLabel = "cluster.k8s.io/millwright-kept"
	// KeptFinalizer keeps the admission policies in force when they are deleted: no
	// policy can refuse that.
	KeptFinalizer = "cluster.k8s.io/millwright-kept"
	// AllowDeletionAnnotation, with the value "true", allows that a CRD of ours or a
	// namespace with KeptLabel is deleted. `kubectl millwright uninstall` sets it on the CRDs
	// once it has counted zero objects.
	AllowDeletionAnnotation = "cluster.k8s.io/allow-deletion"
)

// Labels that Millwright sets.
const (
	// MachineTemplateHashLabel tells the MachineSets of a MachineDeployment, and
	// their Machines, apart. It is on the MachineSet, in its selector and in its
	// template.
	MachineTemplateHashLabel = "machine-template-hash"
	// DeploymentNameLabel is on each MachineSet that belongs to a MachineDeployment, with that
	// one's name. cluster-autoscaler does not scale in the middle of a rollout: it reads that from
	// this label and from AutoscalerRevisionAnnotation. A set has both or neither.
	DeploymentNameLabel = "cluster.x-k8s.io/deployment-name"
)

// Annotations that Millwright sets.
const (
	// NodeMachineAnnotation is on each Node that is a Machine's: "namespace/name".
	NodeMachineAnnotation = "cluster.k8s.io/machine"
	// RevisionAnnotation is on a MachineDeployment and its MachineSets: an integer
	// that grows with each new template; the set with the largest is the current.
	RevisionAnnotation = "machinedeployment.clusters.k8s.io/revision"
	// AutoscalerRevisionAnnotation is RevisionAnnotation again, under the name by
	// which cluster-autoscaler reads it; see DeploymentNameLabel.
	AutoscalerRevisionAnnotation = "machinedeployment.clusters.x-k8s.io/revision"
	// DesiredReplicasAnnotation is on a MachineSet: spec.replicas of its
	// MachineDeployment when the set was last scaled. A difference to now is how a
	// scaling in the middle of a rollout is noticed.
	DesiredReplicasAnnotation = "machinedeployment.clusters.k8s.io/desired-replicas"
	// MaxReplicasAnnotation is on a MachineSet: replicas of its MachineDeployment
	// when the set was last scaled, plus maxSurge. Within it the set replaces
	// Machines before they are gone.
	MaxReplicasAnnotation = "machinedeployment.clusters.k8s.io/max-replicas"
	// ScalingReasonAnnotation is on a MachineSet: why its MachineDeployment last
	// scaled it. With ScalingReasonRolling the set gives up unavailable Machines
	// before those that carry DeleteMachineAnnotation.
	ScalingReasonAnnotation = "machinedeployment.clusters.k8s.io/scaling-reason"
	// RevisionHistoryAnnotation is on a MachineSet whose template was the current one
	// before, and is again: the revisions that it had, separated by commas.
	RevisionHistoryAnnotation = "machinedeployment.clusters.k8s.io/revision-history"
	// RolloutAfterAnnotation is on a MachineSet that was made because of its
	// MachineDeployment's spec.rolloutAfter, with that time.
	RolloutAfterAnnotation = "machinedeployment.clusters.k8s.io/rollout-after"
	// RolloutAnnotation is on each MachineSet of a MachineDeployment whose rollout
	// goes on: RolloutOutdated, RolloutCurrent or RolloutDwindling. Without a rollout
	// it is absent.
	RolloutAnnotation = "machinedeployment.clusters.k8s.io/rollout"
	// HoldScaleDownAnnotation is on each MachineSet that takes part in a rollout of a
	// MachineDeployment with autoscaler sizes: its Nodes get ScaleDownDisabledAnnotation.
	HoldScaleDownAnnotation = "machinedeployment.clusters.k8s.io/hold-scale-down"
	// ManagedAnnotation lists, as JSON, the labels, annotations and taints of an
	// object that come from the object above it: from a MachineDeployment on its
	// MachineSets, from a MachineSet on its Machines, from a Machine on its Node.
	// What is listed and no longer wanted is removed; what is not listed is
	// somebody else's and stays.
	ManagedAnnotation = "cluster.k8s.io/managed"
	// ScaleDownDisabledAnnotation is on the Nodes of a MachineDeployment with
	// autoscaler sizes whose rollout goes on: cluster-autoscaler removes none of
	// them. It is taken away again only where ManagedAnnotation lists it.
	ScaleDownDisabledAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
)

// OutdatedTaint is the key of the taint PreferNoSchedule on Nodes of an old
// template once the rollout has gone on for a minute: pods that move go to new
// Nodes first.
const OutdatedTaint = "node.cluster.k8s.io/outdated"

// Values of RolloutAnnotation.
const (
	// RolloutOutdated: the set's machines are being replaced.
	RolloutOutdated = "Outdated"
	// RolloutCurrent: the set's machines replace others.
	RolloutCurrent = "Current"
	// RolloutDwindling: the strategy is OnDelete. The set makes no more machines;
	// those that are deleted are replaced by the current set.
	RolloutDwindling = "Dwindling"
)

// Values of ScalingReasonAnnotation.
const (
	// ScalingReasonRolling: machines of an old template make room for new ones.
	ScalingReasonRolling = "Rolling"
	// ScalingReasonScaling: the deployment's size has changed.
	ScalingReasonScaling = "Scaling"
)

// Annotations that others set and Millwright reads.
const (
	// DeleteMachineAnnotation, with any value, on a Machine makes it the first to
	// go when its set gets smaller. cluster-autoscaler sets it.
	DeleteMachineAnnotation = "cluster.k8s.io/delete-machine"
	// MachinePriorityAnnotation on a Machine is an integer, 0 if absent: when its
	// set gets smaller, machines with a lower one go before those with a higher.
	MachinePriorityAnnotation = "cluster.k8s.io/machine-priority"
	// PausedAnnotation on a MachineDeployment, MachineSet, Machine or Cluster, with
	// any value but "false", makes Millwright leave the object alone: nothing is
	// created, changed or deleted for it, and its condition Paused says so.
	PausedAnnotation = "cluster.k8s.io/paused"
	// PreserveMachineAnnotation on a Machine, with any value but "false", keeps it
	// from being replaced when it has failed, so that it can be studied. It counts
	// as one of its set's machines until the annotation or the Machine is removed.
	PreserveMachineAnnotation = "cluster.k8s.io/preserve-machine"
	// BootstrapTemplatesAnnotation on a Machine, or else on its Cluster, names a ConfigMap
	// in the same namespace whose keys "ubuntu" and "flatcar" hold templates of files and
	// units for the machine. A change reaches the machines that are made afterwards.
	BootstrapTemplatesAnnotation = "cluster.k8s.io/bootstrap-templates"
	// DeleteNowAnnotation on a Machine or its Node, with any value but "false", has
	// the Machine deleted, drained as always, and replaced by its set.
	DeleteNowAnnotation = "cluster.k8s.io/delete-now"
	// ForgetAnnotation on a Machine that is being deleted, with its machineUID as the
	// value, lets the Machine go without its VM: the driver is not called any more.
	// Setting it takes the verb forget on the Machine. A template cannot set it.
	ForgetAnnotation = "cluster.k8s.io/forget"
	// DrainLabel on a pod says what a drain does with it: DrainSkip leaves it on its Node,
	// DrainWaitCompleted waits until it has ended by itself. Key and values are Cluster API's.
	DrainLabel = "cluster.x-k8s.io/drain"
	// DrainSkip is a value of DrainLabel.
	DrainSkip = "skip"
	// DrainWaitCompleted is a value of DrainLabel.
	DrainWaitCompleted = "wait-completed"
	// DrainOrderAnnotation on a pod is an integer: pods are evicted once those with a lower
	// one have gone from their Node. Without it, pods of priority system-cluster-critical or
	// more have 1000, all others 0.
	DrainOrderAnnotation = "cluster.k8s.io/drain-order"
	// DrainPodsWithVolumesAnnotation on a Machine says how its drain goes about pods that use a
	// PersistentVolumeClaim. DrainOneAtATime has one of them evicted only once the one before is
	// gone and its volumes are detached from the Node. With any other value, and without the
	// annotation, they are evicted all at once like other pods.
	DrainPodsWithVolumesAnnotation = "cluster.k8s.io/drain-pods-with-volumes"
	// DrainOneAtATime is the value of DrainPodsWithVolumesAnnotation.
	DrainOneAtATime = "one-at-a-time"
	// ExcludeNodeDrainingAnnotation on a Machine, with any value, has its deletion skip the drain,
	// or what is left of it: the VM goes with the pods that are on its Node. The name is Cluster
	// API's.
	ExcludeNodeDrainingAnnotation = "machine.cluster.x-k8s.io/exclude-node-draining"
	// ExcludeWaitForNodeVolumeDetachAnnotation on a Machine, with any value, has its deletion wait
	// for no volume: the VM goes with those that are attached to its Node. The name is Cluster
	// API's.
	ExcludeWaitForNodeVolumeDetachAnnotation = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
	// PreDrainHookAnnotationPrefix begins the keys of annotations on a Machine that hold its
	// deletion before its Node is cordoned and drained. What follows the prefix, as in
	// "/backup", tells hooks apart; the value names who takes the annotation away once its
	// work is done. Key and meaning are Cluster API's. Source:
	// https://github.com/kubernetes-sigs/cluster-api/blob/main/docs/proposals/20200602-machine-deletion-phase-hooks.md
	PreDrainHookAnnotationPrefix = "pre-drain.delete.hook.machine.cluster.x-k8s.io"
	// PreTerminateHookAnnotationPrefix begins the keys of those that hold it before its VM
	// is deleted.
	PreTerminateHookAnnotationPrefix = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"
	// SkipRemediationAnnotation on a Machine, with any value but "false", keeps it from
	// being replaced for a health check. The name is Cluster API's.
	SkipRemediationAnnotation = "cluster.x-k8s.io/skip-remediation"
	// RemediateMachineAnnotation on a Machine that a health check selects, with any value
	// but "false", makes it unhealthy at once. The name is Cluster API's.
	RemediateMachineAnnotation = "cluster.x-k8s.io/remediate-machine"
	// NodeGroupMinSizeAnnotation on a MachineDeployment or MachineSet is the least
	// number of machines that cluster-autoscaler leaves it.
	NodeGroupMinSizeAnnotation = "cluster.k8s.io/cluster-api-autoscaler-node-group-min-size"
	// NodeGroupMaxSizeAnnotation on a MachineDeployment or MachineSet is the largest
	// number of machines that cluster-autoscaler gives it.
	NodeGroupMaxSizeAnnotation = "cluster.k8s.io/cluster-api-autoscaler-node-group-max-size"
	// CapacityCPUAnnotation on a MachineDeployment tells cluster-autoscaler how many
	// CPUs a machine has. Where somebody has annotated sizes, and neither this nor
	// CapacityMemoryAnnotation, core writes both, and what else its driver says.
	CapacityCPUAnnotation = "capacity.cluster-autoscaler.kubernetes.io/cpu"
	// CapacityMemoryAnnotation on a MachineDeployment tells cluster-autoscaler how much
	// memory a machine has, as a quantity of Kubernetes.
	CapacityMemoryAnnotation = "capacity.cluster-autoscaler.kubernetes.io/memory"
	// CapacityOfAnnotation on a MachineDeployment says that core has written what a
	// machine offers, and for which template. Who removes it keeps that as it is.
	CapacityOfAnnotation = "cluster.k8s.io/autoscaler-capacity-of"
	// ClusterAPIPausedAnnotation on a MachineDeployment, with any value, makes
	// cluster-autoscaler leave it alone. Core writes it, with PausedAnnotation as value, where
	// PausedAnnotation and sizes are, and takes away what it wrote. Source:
	// https://github.com/kubernetes/autoscaler/pull/9354
	ClusterAPIPausedAnnotation = "cluster.x-k8s.io/paused"
)
