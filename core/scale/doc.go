// Package scale decides for a MachineSet how many Machines to create, under which names, and which
// to delete. It is pure: values in, values out; time is a field of a value.
//
// # Counting
//
// Every Machine that exists counts, also one that is being deleted: its VM is still there and still
// takes up quota. Yet a set must not wait with the replacement until it is gone, for its drain may
// wait for the very Node that replaces it. So two bounds hold at once: those that stay are never
// more than there should be, and all together never more than that and State.Spare. Without Spare a
// Machine is replaced when it is gone. See docs/adr/0003.
//
// Whoever decides how large the sets of a MachineDeployment are may be wrong as well. So a set that
// wants more Machines gets none while all of them together overshoot what the MachineDeployment may
// have. Victims, in decision.go, is the order in which Machines go.
//
// # Repair
//
// Failed Machines are replaced as package health allows: a few at a time, with pauses, and not
// while too much of the whole fleet is unhealthy. Machines that are too many go all the same, and
// missing ones are created.
//
// # Never one too many
//
// A count of Machines is only as good as the cache it was made from. An answer can get lost
// after its request was carried out. Therefore the names of a set's Machines are not random.
// They are numbered, and whoever creates a Machine for the set takes the lowest number that is
// not decided: the same one that was tried before, if it is not known what became of that
// attempt. If the Machine is there already, the API server answers AlreadyExists, and that it
// is there is all that was wanted.
//
// Names keeps the numbers. One number per set is persisted, in status.nextIndex: every number below
// it is decided, that is, its Machine was created, or will never be. It is written together with
// the rest of the status after the Machines of a reconcile were created. So it costs no write
// of its own. If the process dies before, its successor finds the lower number, and the
// Machines that exist. It tries the numbers in between again, which either exist or were never
// created. That holds as long as no Machine is finally removed before its number is decided:
// whoever removes finalizers asks IsDecided. So no name is ever used again, not by another
// Machine of the set either. The set's uid in the name keeps apart sets of the same name.
//
// Pending is the memory of a single process: what it created and deleted that its cache does not
// show yet. It never expires by time, since an entry dropped too early is a Machine too many.
// What the cache does not show for long is looked up instead. A process that has just started,
// or that has lost an answer, lists the Machines live before it creates any.
package scale
