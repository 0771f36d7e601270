// Package bootstrap renders the user data with which a VM becomes a Node. It is pure: the same
// machine gives the same bytes.
//
// For Ubuntu that is a cloud-config (https://docs.cloud-init.io, module reference) of these keys,
// and no others:
//
//	hostname             the Node's name
//	ssh_authorized_keys  who may log in; absent without keys
//	package_upgrade      true to upgrade all packages on the first boot; else absent
//	write_files          two files, both owned by root, mode 0644:
//	  /etc/default/kubelet            KUBELET_EXTRA_ARGS="…", which the kubelet's packages read
//	  /etc/millwright/kubelet-version the version of the kubelet that the machine is to run,
//	                                  without a leading v
//
// KUBELET_EXTRA_ARGS holds, in this order, --hostname-override=NAME, and where there are any
// --node-labels=k=v,… and --register-with-taints=k=v:Effect,…; both sorted. Values are checked,
// never quoted: what Kubernetes accepts as a name, label or taint has no character that a shell or
// systemd would interpret.
//
// The labels are only those that a kubelet may give itself; the others are for core to set on the
// Node.
package bootstrap
