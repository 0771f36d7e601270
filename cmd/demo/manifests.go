package demo

import (
	_ "embed"
	"fmt"

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
	//go:embed application.yaml
	application []byte
)

// What the manifests hold, as far as the script depends on it.
const (
	// namespace is the application's.
	namespace = "default"
	scaledTo  = 6
	// podFloor is how many pods of the application its PodDisruptionBudget keeps up.
	podFloor   = 5
	newKubelet = "1.36.3"
)

// fleet is the MachineDeployment that the demo applies.
type fleet struct {
	manifest        []byte
	namespace, name string
	replicas        int
}

// fleetOn returns the MachineDeployment for a cloud. The error means that it cannot be read.
func fleetOn(cloud stack.Provider) (fleet, error) {
	manifest := fakeDeployment
	if cloud.Name() == stack.OpenStack().Name() {
		manifest = openStackDeployment
	}
	var deployment clusterv1alpha1.MachineDeployment
	if err := yaml.UnmarshalStrict(manifest, &deployment); err != nil {
		return fleet{}, fmt.Errorf("read the MachineDeployment for %s: %w", cloud.Name(), err)
	}
	return fleet{
		manifest: manifest, namespace: deployment.Namespace, name: deployment.Name, replicas: int(ptr.Deref(deployment.Spec.Replicas, 0)),
	}, nil
}

// command is one of kubectl's about the MachineDeployment.
func (f fleet) command(verb string, flags ...string) []string {
	return append([]string{verb, "machinedeployment", f.name, "--namespace=" + f.namespace}, flags...)
}
