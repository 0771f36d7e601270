package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/millwright-dev/millwright/localcluster"
)

// NodeImageDir is the folder in Options.BinDir with the image that `make node-image` builds:
// node.qcow2, vmlinuz and initrd.img.
const NodeImageDir = "node-image"

// Bridge is a bridge of this machine that VMs are put on.
type Bridge struct {
	Name string
	// Addresses are those that VMs get, as 10.77.0.10-10.77.0.99/24.
	Addresses string
	// Gateway is this machine's own address on the bridge.
	Gateway string
}

// QEMU returns real VMs that QEMU runs on this machine. They need no simulated kubelets: the image
// brings a real one. Each has a network of its own behind QEMU, so that kubectl logs and exec reach
// no pod.
func QEMU() Provider { return qemu{} }

// QEMUOnBridge returns the same with VMs on a bridge, where the API server reaches their kubelets.
// It listens on all addresses then: use it in a network namespace of its own.
func QEMUOnBridge(b Bridge) Provider { return qemu{bridge: b} }

type qemu struct{ bridge Bridge }

func (qemu) Name() string { return "qemu" }

// hostInUserNetwork is what a VM in QEMU's user network reaches this machine's loopback by.
// https://www.qemu.org/docs/master/system/devices/net.html
const hostInUserNetwork = "10.0.2.2"

func (q qemu) endpoint() localcluster.Endpoint {
	if q.bridge.Name == "" {
		return localcluster.Endpoint{Host: hostInUserNetwork}
	}
	return localcluster.Endpoint{BindAddress: "0.0.0.0", Host: q.bridge.Gateway}
}

func (q qemu) serving(at places) (serving, error) {
	if _, err := os.Stat(filepath.Join(at.images, "node.qcow2")); err != nil {
		return serving{}, fmt.Errorf("find the image of a Node (`make node-image` builds it): %w", err)
	}
	args := []string{"--endpoint=" + at.driver, "--state-dir=" + at.state, "--image-dir=" + at.images}
	if b := q.bridge; b.Name != "" {
		args = append(args, "--bridge="+b.Name, "--bridge-addresses="+b.Addresses, "--bridge-gateway="+b.Gateway)
	}
	return serving{driver: "millwright-driver-qemu", driverArgs: args, vms: filepath.Join(at.state, "machines")}, nil
}

const (
	vmsGoneTimeout  = 10 * time.Second
	vmsGoneInterval = 20 * time.Millisecond
)

// endVMs kills the VMs whose folders lie in a folder of the QEMU driver, and returns when they are
// gone. VMs outlive their driver, and a stack leaves nothing running. It does nothing where there
// is no such folder.
func endVMs(folder string) error {
	if folder == "" {
		return nil
	}
	folders, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tick := time.NewTicker(vmsGoneInterval)
	defer tick.Stop()
	for _, vm := range folders {
		for deadline := time.Now().Add(vmsGoneTimeout); ; <-tick.C {
			pid := findVM(vm.Name())
			if pid == 0 {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d, a VM, is still there %s after SIGKILL", pid, vmsGoneTimeout)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("end the VM of machine %s: %w", vm.Name(), err)
			}
		}
	}
	return nil
}

// findVM returns the process of a machine's VM, 0 if there is none. The driver names it by the
// machine's uid.
func findVM(uid string) int {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is good
	for _, path := range lines {
		// A process that has ended meanwhile has no command line.
		if line, _ := os.ReadFile(path); strings.Contains(string(line), "\x00millwright-"+uid+"\x00") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path))) // by the pattern
			return pid
		}
	}
	return 0
}
