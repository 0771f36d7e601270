package mutant

import "slices"

// All returns all mutants.
func All() []Mutant {
	return slices.Concat(ofIdentity(), ofCreate(), ofUserData(), ofFailures(), ofStatus(), ofConsoles(), ofLists(), ofDeletes(), ofAdoptions(), ofSpecs(), ofFaults(),
		ofAccess(), ofExec(), ofHTTP())
}
