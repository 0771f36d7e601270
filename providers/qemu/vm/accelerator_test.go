package vm

import (
	"os"
	"path/filepath"
	"testing"
)

// KVM is chosen where a VM's firmware speaks with it. That the device is there is not enough.
func TestAcceleratorIsTried(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"speaks":       {"echo SeaBIOS; exec sleep 60", KVM},
		"ends silent":  {"exit 1", TCG},
		"hangs silent": {"exec sleep 60", TCG},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			qemu := filepath.Join(t.TempDir(), "qemu")
			if err := os.WriteFile(qemu, []byte("#!/bin/sh\n"+tc.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			if got := tryKVM(t.Context(), qemu); got != tc.want {
				t.Errorf("it is %s, want %s", got, tc.want)
			}
		})
	}
}

// A parameter of KVM's is on as either of its modules writes it. A module that is not there has
// none.
func TestNestedPagingIsRead(t *testing.T) {
	for text, want := range map[string]bool{"Y\n": true, "1\n": true, "N\n": false, "0\n": false, "": false} {
		parameter := filepath.Join(t.TempDir(), "ept")
		if err := os.WriteFile(parameter, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := isSwitchedOn(parameter); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
	if isSwitchedOn(filepath.Join(t.TempDir(), "npt")) {
		t.Error("a module that is not there has it")
	}
}
