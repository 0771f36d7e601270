package sdk_test

import (
	"testing"

	"github.com/millwright-dev/millwright/sdk"
)

func TestOneCallForAMachineAtATime(t *testing.T) {
	var locks sdk.Locks
	first, other := goodCreate(), goodCreate()
	other.Machine.Uid = "another"
	unlock, err := locks.Lock(first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Lock(goodCreate()); reasonOf(err) != "OPERATION_PENDING" {
		t.Errorf("a second call for the machine: %v", err)
	}
	if free, err := locks.Lock(other); err != nil {
		t.Errorf("a call for another machine: %v", err)
	} else {
		free()
	}
	unlock()
	if again, err := locks.Lock(first); err != nil {
		t.Errorf("after it has ended: %v", err)
	} else {
		again()
	}
}
