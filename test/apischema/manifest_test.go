package apischema

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The shortest manifests that are accepted.
const (
	deploymentManifest = `
apiVersion: cluster.k8s.io/v1alpha1
kind: MachineDeployment
metadata:
  name: nodes
spec:
  replicas: 2
  selector:
    matchLabels:
      group: nodes
  template:
    metadata:
      labels:
        group: nodes
    spec:
      providerSpec:
        value:
          cloudProvider: fake
          cloudProviderSpec:
            size: small
          operatingSystem: ubuntu
      versions:
        kubelet: 1.36.3
`
	machineManifest = `
apiVersion: cluster.k8s.io/v1alpha1
kind: Machine
metadata:
  name: node-1
spec:
  providerSpec:
    value:
      cloudProvider: fake
      cloudProviderSpec:
        size: small
        zone: a
      operatingSystem: ubuntu
  versions:
    kubelet: 1.36.3
`
)

const checkManifest = `
apiVersion: cluster.k8s.io/v1alpha1
kind: MachineHealthCheck
metadata:
  name: workers
spec:
  selector:
    matchLabels: {pool: workers}
  unhealthyNodeConditions:
  - {type: Ready, status: Unknown, timeout: 5m}
  - {type: DiskPressure, status: "True", timeout: 1h30m}
  unhealthyMachineConditions:
  - {type: InstanceReady, status: "False", timeout: 10m}
  nodeStartupTimeout: 10m
  maxUnhealthy: 40%
`

// Those of what machines inherit have all that there is.
const (
	classManifest = `
apiVersion: cluster.k8s.io/v1alpha1
kind: MachineClass
metadata:
  name: large
provider: fake
providerSpec:
  size: large
  password:
    secretKeyRef: {name: cloud, key: password}
secretRef: {name: cloud}
credentialsSecretRef: {name: cloud, namespace: clouds}
nodeTemplate:
  capacity: {cpu: "4", memory: 16Gi, nvidia.com/gpu: 1}
  instanceType: large
  region: a
  zone: a-1
  architecture: amd64
`
	clusterManifest = `
apiVersion: cluster.k8s.io/v1alpha1
kind: Cluster
metadata:
  name: blue
spec:
  clusterNetwork:
    services: {cidrBlocks: [10.96.0.0/12]}
    pods: {cidrBlocks: [10.244.0.0/16, "fd00::/56"]}
    serviceDomain: cluster.local
  apiEndpoints:
    - {host: api.example.com, port: 6443}
  credentialsSecretRef: {name: cloud}
  providerSpec:
    value:
      cloudProvider: fake
      cloudProviderSpec: {network: blue}
`
)

// setManifest is the same for a MachineSet.
var setManifest = strings.Replace(deploymentManifest, "kind: MachineDeployment", "kind: MachineSet", 1)

// edit sets the field at a dotted path to a YAML value, or removes it if the
// value is empty.
type edit struct{ path, value string }

// edited returns the manifest with the edits applied.
func edited(t *testing.T, manifest string, edits ...edit) string {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatal(err)
	}
	for _, e := range edits {
		path := strings.Split(e.path, ".")
		if e.value == "" {
			unstructured.RemoveNestedField(object, path...)
			continue
		}
		var value any
		if err := yaml.Unmarshal([]byte(e.value), &value); err != nil {
			t.Fatalf("%s: %v", e.path, err)
		}
		if err := unstructured.SetNestedField(object, value, path...); err != nil {
			t.Fatalf("%s: %v", e.path, err)
		}
	}
	out, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
