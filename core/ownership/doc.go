// Package ownership is how MachineDeployments own MachineSets, and MachineSets own Machines. It
// says who adopts and releases an object, and how the object's events find the owner. It also
// says which of the object's labels and annotations come from the owner, and when an owned
// Machine may be removed for good. Type Machines reads an owner's Machines from the cache.
package ownership
