package vm

import (
	"context"
	"os/exec"
	"runtime"
	"slices"
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

// ChooseAccelerator returns KVM where a VM boots with it, else TCG. A /dev/kvm that can be opened
// is no proof: there are hosts on which the VM then hangs. So it is told by a VM without a disk,
// whose firmware has to speak on its serial console. Without KVM that VM ends at once.
func ChooseAccelerator(ctx context.Context, qemu string) string {
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
