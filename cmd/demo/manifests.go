package demo

import (
	_ "embed"
	"fmt"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
)

// The manifests that the demo applies with kubectl.
var (
	//go:embed machinedeployment.yaml
	fakeDeployment []byte
	// openStackDeployment is one of MetaKube's users, as they have it.
	//go:embed openstack.yaml
	openStackDeployment []byte
	// qemuDeployment is of VMs that QEMU runs.
	//go:embed qemu.yaml
	qemuDeployment []byte
	//go:embed application.yaml
	application string
)

// namespace is the application's.
const namespace = "default"

// fleet is the MachineDeployment that the demo applies, and what becomes of it.
type fleet struct {
	manifest        []byte
	namespace, name string
	replicas        int
	// scaledTo is how many Machines, and pods of the application, there are at most.
	scaledTo int
	// change is a patch of the template that replaces each Machine.
	change string
	// patience bounds each wait.
	patience time.Duration
}

// The whole demo takes about a minute on a test cloud. A VM boots for up to a few minutes without
// KVM, so there are few.
const (
	testPatience, testSize = 90 * time.Second, 6
	vmPatience, vmSize     = 20 * time.Minute, 2
)

// fleetOn returns the MachineDeployment for a cloud. The error means that it cannot be read.
func fleetOn(cloud stack.Provider) (fleet, error) {
	f := fleet{
		manifest: fakeDeployment, scaledTo: testSize, patience: testPatience,
		change: `{"spec":{"template":{"spec":{"versions":{"kubelet":"1.36.3"}}}}}`,
	}
	switch cloud.Name() {
	case stack.OpenStack().Name():
		f.manifest = openStackDeployment
	case stack.QEMU().Name():
		f.manifest, f.scaledTo, f.patience = qemuDeployment, vmSize, vmPatience
		f.change = `{"spec":{"template":{"spec":{"providerSpec":{"value":{"cloudProviderSpec":{"memory":"1100Mi"}}}}}}}`
	}
	var deployment clusterv1alpha1.MachineDeployment
	if err := yaml.UnmarshalStrict(f.manifest, &deployment); err != nil {
		return fleet{}, fmt.Errorf("read the MachineDeployment for %s: %w", cloud.Name(), err)
	}
	f.namespace, f.name, f.replicas = deployment.Namespace, deployment.Name, int(ptr.Deref(deployment.Spec.Replicas, 0))
	return f, nil
}

// podFloor is how many pods of the application its PodDisruptionBudget keeps up.
func (f fleet) podFloor() int { return f.scaledTo - 1 }

// application is the manifest of as many pods as there are Machines at most.
func (f fleet) application() []byte { return fmt.Appendf(nil, application, f.scaledTo) }

// command is one of kubectl's about the MachineDeployment.
func (f fleet) command(verb string, flags ...string) []string {
	return append([]string{verb, "machinedeployment", f.name, "--namespace=" + f.namespace}, flags...)
}
