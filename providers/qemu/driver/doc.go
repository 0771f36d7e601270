// Package driver maps the contract to VMs that QEMU runs on this host. What a VM is, and how it is
// made once, is in package vm; here stands what core is told.
//
// Nothing is kept between calls but in the state directory. Whoever changes something has the
// directory's lock; whoever looks needs none.
package driver
