// Package simkubelet plays the kubelets of a test cloud's VMs, thousands in one process.
//
// It follows the cloud through millwright.backend.v1alpha1 and does for each VM what a real one
// would do by itself:
//
//   - A running VM reads its user data, a cloud-config, and starts a kubelet with the arguments in
//     KUBELET_EXTRA_ARGS of /etc/default/kubelet. Without that file there is no kubelet, and no
//     Node. What a real kubelet refuses, this one refuses: it logs why, and there is no Node
//     either.
//   - The kubelet registers a Node, Ready at once, and renews its Lease. In place of a cloud
//     controller manager, the Node comes with the VM's provider id, addresses, region, zone and
//     instance type.
//   - A VM that stops shuts its kubelet down gracefully: the Node and the pods on it become
//     NotReady at once. A VM that fails or goes loses power: nothing is said, the Lease gets old,
//     and kube-controller-manager declares the Node Unknown and the pods on it NotReady. Nobody
//     here deletes a Node.
//   - A VM that runs again has the same Node again, or registers a new one if it was deleted
//     meanwhile. While the VM runs, a deleted Node stays deleted, as with a real kubelet, which
//     registers only when it starts.
//   - A Node of the same name that belongs to another VM is left alone; the kubelet tries again
//     until it is gone.
//
// Pods are kwok's to play, on Nodes with the label [localcluster.KubeletLabel] only: a kubelet
// takes it off with its last breath, or, where it had none, somebody does a second later in its
// place.
//
// All state is in the cloud and the API server: a process that starts anew takes over what an
// earlier one registered.
package simkubelet
