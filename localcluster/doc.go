// Package localcluster runs a whole Kubernetes cluster on one machine, from binaries, without a
// container engine.
//
// etcd, kube-apiserver, kube-controller-manager and kube-scheduler are the real ones, as processes
// on 127.0.0.1. What a machine would contribute is played: Nodes by simulated kubelets (package
// simkubelet, one process for thousands), and the pods on them by kwok. Pods therefore get
// scheduled, become Ready, are evicted under PodDisruptionBudgets and come up elsewhere as
// anywhere, but no container runs.
//
// [Start] brings a cluster up that is fresh, however its directory looked before, and
// [Cluster.Stop] ends it. Nothing is left behind either way: see package supervisor.
//
// A machine that is to join finds what it needs where kubeadm puts it: the ConfigMap
// kube-public/cluster-info names the API server and its authority, and
// kube-system/extension-apiserver-authentication has the authority of clients. There is no
// ConfigMap kubelet-config and no Service kube-dns. Bootstrap tokens authenticate,
// kube-controller-manager signs what is approved, and nothing approves by itself: see
// [DefaultControllers]. The API server may use the API of kubelets, as kubectl logs and exec need.
// VMs need [Options].Endpoint.
//
// Who is who: each component has a client certificate of its own, so that the audit log tells their
// writes apart. Everything below the directory is readable by its owner alone, since it holds keys.
package localcluster
