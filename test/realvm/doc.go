// Package realvm tests that a VM becomes a Node, with nothing simulated: QEMU, cloud-init,
// containerd, a kubelet, the kernel's own bridge. Its tests need root, QEMU and the image that
// `make node-image` builds. Those named TestQEMU are for `make test-qemu`: they take long. The one
// on OpenStack is for `make test-openstack-boot`.
package realvm
