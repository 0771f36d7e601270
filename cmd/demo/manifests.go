package demo

import _ "embed"

// The manifests that the demo applies with kubectl.
var (
	//go:embed machinedeployment.yaml
	machineDeployment []byte
	//go:embed application.yaml
	application []byte
)

// What the manifests hold, as far as the script depends on it.
const (
	namespace = "default"
	workers   = "workers"
	replicas  = 3
	scaledTo  = 6
	// podFloor is how many pods of the application its PodDisruptionBudget keeps up.
	podFloor   = 5
	newKubelet = "1.36.3"
)
