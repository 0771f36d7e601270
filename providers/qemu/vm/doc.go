// Package vm runs VMs with QEMU on this host. Each has a folder, named by its machine's uid:
//
//	record.json   whose it is and what was asked for: the truth (Store)
//	lock          held by the VM's process for as long as it lives (Folder.Phase)
//	disk.qcow2    an overlay on the image
//	seed.iso      NoCloud's seed: user data, meta data, network configuration
//	pid           written by QEMU once it has begun, and removed by it when it ends by itself
//	qmp.sock      QEMU's control socket
//	console.log   what the VM wrote to its serial console
//	qemu.log      what QEMU has to say about itself
//
// Everything in the folder is made under the lock. A driver that is killed loses the lock, or has
// handed it on to QEMU: whoever takes it later is alone, and finds either a VM that has begun, or
// files that nobody uses.
package vm
