// Package lifecycle decides what to do next for one Machine: from what is written down, what its
// driver and its Node say, and what time it is, to one step. It is pure. A step has four stages;
// each takes and returns values:
//
//	remember  the Memory with what was seen since the last step
//	decide    one action, or what to wait for, and why
//	describe  the status that follows from state and decision; each condition has one function
//	debounce  what of it is not worth a write yet
//
// decide goes through the parts of a life until one has decided. A file has one part or a few, with
// the conditions that tell of them:
//
//	on the way in:  identity.go → create.go → instance.go → token.go → join.go → console.go
//	on the way out: identity.go → hooks.go → drain.go → volumes.go → delete.go → token.go
//	in between:     operator.go: pause, delete now, forget
//
// Read next.go, state.go and step.go first; memory.go remembers, describe.go describes and
// debounces. Whoever calls Next does what Step.Do says, and asks again with what came of it, until
// there is nothing to do. See Step for what is written when. Calling Next twice with the same
// state gives the same step.
//
// What holds over every history (the tests generate them):
//
//   - Identity. A providerID counts once the driver has given it for the machine's uid; before, the
//     machine has no Node and no create.
//   - Intent. The status says that a create may be under way before the first one is sent.
//   - One call. While a call is under way nothing else is started: a delete waits for the create
//     before it.
//   - Doubt. A create whose outcome is unknown may bring forth its VM late. The finalizer goes only
//     after a Delete that was sent when the driver's create_settle had passed since the doubt
//     began, and left nothing. A process knows its own attempts; those of processes before it had
//     ended, or were cut off, when it became the leader: hence Driver.LeadingSince.
//   - Never again. A uid that had a VM gets no other: a VM that is gone fails its machine.
//   - Patience. What is late is late by a clock that runs only while things can be observed:
//     nothing is given up because a driver, the API server or this process was away.
//   - Token. A machine that is Running has no bootstrap token, and none is left when the machine is
//     over. While a VM may still need it, it is extended. No second one is minted while a VM may
//     have the first; a VM that has lost its token fails its machine.
//   - Volumes. No Delete is sent while volumes of drained pods are attached to the Node, unless
//     their time has passed, nobody is left there to unmount them, or the VM is gone.
//   - Forgotten. A machine that somebody with the right to do so gives up goes without its VM. What
//     it leaves behind is written down before.
//   - Brake. For a paused machine nothing is done but to show that it is paused, and to have the
//     token last of a VM that is coming up.
//   - No write for nothing. What passes within seconds is not written down (see debounce), and what
//     is settled is left alone.
package lifecycle
