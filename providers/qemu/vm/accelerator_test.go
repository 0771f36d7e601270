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
			if got := ChooseAccelerator(t.Context(), qemu); got != tc.want {
				t.Errorf("it is %s, want %s", got, tc.want)
			}
		})
	}
}
