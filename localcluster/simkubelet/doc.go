// Package simkubelet plays the kubelets of a test cloud's VMs, thousands in one process.
//
// It follows the cloud through millwright.backend.v1alpha1 and does for each VM what a real one
// would do by itself:
//
//   - A running VM lays out the files of its user data, a cloud-config or an Ignition
//     configuration (package firstboot), and starts a kubelet with the arguments in
//     KUBELET_EXTRA_ARGS of /etc/default/kubelet and the configuration in
//     /var/lib/kubelet/config.yaml. Without the former there is no kubelet, and no Node. What a
//     real kubelet refuses, this one refuses: it logs why, and there is no Node either.
//   - The kubelet joins by TLS bootstrap: with the token in /etc/kubernetes/bootstrap-kubelet.conf
//     it requests a client certificate, and waits until somebody approves. Refused, it requests
//     another: each attempt has a new key and a name that the API server chooses, with the pauses
//     of a kubelet that rotates its certificates. Without one it ends after five minutes and
//     systemd starts it again.
//   - As that user, system:node:NAME, it registers a Node, Ready at once, and requests a serving
//     certificate. In place of a cloud controller manager, the Node comes with the VM's provider
//     id, addresses, region, zone and instance type; with --cloud-provider=external, it waits for
//     one.
//   - The one process plays thousands: Leases, status and pods are written by the shared user
//     localcluster:sim-kubelet, over one connection. A kubelet's own connection closes when it has
//     its certificates. They are never renewed, and no kubelet's API is served.
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
// All state but the certificates is in the cloud and the API server: a process that starts anew
// takes over what an earlier one registered. A VM that has no Node by then joins once more.
//
// [Options].Fast leaves TLS bootstrap out, for benchmarks of something else: the shared user
// registers the Nodes then, and user data needs no token.
package simkubelet
