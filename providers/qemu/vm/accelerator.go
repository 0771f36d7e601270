package vm

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Accelerators.
const (
	// KVM runs the VM's instructions on the host's processor.
	KVM = "kvm"
	// TCG translates them, ten times slower, on any host.
	TCG = "tcg"
)

func acceleratorArguments(name string) []string {
	if name == KVM {
		return []string{"-accel", "kvm", "-cpu", "host"}
	}
	return []string{"-accel", "tcg,thread=multi", "-cpu", "max"}
}

// trialLimit is how long the firmware of a VM may take to speak with KVM; it needs a tenth of that.
const trialLimit = 5 * time.Second

// nestedPaging are the files that say whether the processor translates a guest's addresses itself.
var nestedPaging = []string{"/sys/module/kvm_intel/parameters/ept", "/sys/module/kvm_amd/parameters/npt"}

// ChooseAccelerator returns KVM where a VM boots with it, else TCG. A /dev/kvm that can be opened
// is no proof: there are hosts on which the VM then hangs. So it is told by a VM without a disk,
// whose firmware has to speak on its serial console. Without KVM that VM ends at once. Without
// nested paging the firmware speaks, and Linux does not boot.
func ChooseAccelerator(ctx context.Context, qemu string) string {
	if runtime.GOARCH == "amd64" && !slices.ContainsFunc(nestedPaging, isSwitchedOn) {
		return TCG
	}
	return tryKVM(ctx, qemu)
}

// tryKVM returns KVM if the firmware of a VM speaks with it, else TCG.
func tryKVM(ctx context.Context, qemu string) string {
	ctx, cancel := context.WithTimeout(ctx, trialLimit)
	defer cancel()
	args := []string{"-nodefaults", "-no-user-config", "-display", "none", "-m", "64", "-net", "none", "-serial", "stdio"}
	args = slices.Concat(args, platform[runtime.GOARCH], acceleratorArguments(KVM), firmware[runtime.GOARCH])
	trial := exec.CommandContext(ctx, qemu, args...)
	console, err := trial.StdoutPipe()
	if err != nil || trial.Start() != nil {
		return TCG
	}
	n, _ := console.Read(make([]byte, 1)) // until it speaks, ends, or is killed
	cancel()
	_ = trial.Wait() // it was killed
	if n == 0 {
		return TCG
	}
	return KVM
}

// isSwitchedOn reads a parameter of a kernel module. Where nested paging is off, KVM emulates each
// instruction that writes to a guest's page tables. It knows no CMPXCHG16B, with which Linux writes
// to pages that were page tables, and stops the VM: em_cmpxchg8b in arch/x86/kvm/emulate.c.
func isSwitchedOn(parameter string) bool {
	text, err := os.ReadFile(parameter)
	return err == nil && (strings.TrimSpace(string(text)) == "Y" || strings.TrimSpace(string(text)) == "1")
}
