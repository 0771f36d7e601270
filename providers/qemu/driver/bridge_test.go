package driver_test

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"testing"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/qemu/driver"
	"github.com/millwright-dev/millwright/providers/qemu/vm"
)

// inNamespace has this test run once more, in a network namespace of its own with a bridge.
const inNamespace = "QEMU_TEST_IN_NAMESPACE"

// On a bridge each VM has an address of its own, and a tap that goes with it.
func TestBridge(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		script := "ip link add br0 type bridge && ip link set br0 up && exec \"$0\" -test.run '^TestBridge$'"
		again := exec.CommandContext(t.Context(), "unshare", "--net", "sh", "-c", script, os.Args[0])
		again.Env = append(os.Environ(), inNamespace+"=1")
		if err := exec.CommandContext(t.Context(), "unshare", "--net", "ip", "link", "add", "br0", "type", "bridge").Run(); err != nil {
			t.Skipf("this system gives no network namespace with a bridge: %v", err)
		}
		if said, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
		return
	}
	s := newScene(t, func(o *driver.Options) {
		o.Bridge = vm.Bridge{
			Name: "br0", First: netip.MustParsePrefix("10.77.0.10/24"), Last: netip.MustParseAddr("10.77.0.11"), Gateway: netip.MustParseAddr("10.77.0.1"),
		}
	})
	const bridged = `{"image": "empty.raw", "memory": "64Mi", "cpus": 1, "network": {"type": "bridge"}}`
	if got := s.running("first", bridged).GetAddresses(); !slices.ContainsFunc(got, func(a *driverv1alpha1.MachineAddress) bool {
		return a.GetType() == driverv1alpha1.AddressType_ADDRESS_TYPE_INTERNAL_IP && a.GetAddress() == "10.77.0.10"
	}) {
		t.Errorf("the first VM has the addresses %v, want the first of the range", got)
	}
	s.running("second", bridged)
	if n := taps(t); n != 2 {
		t.Errorf("there are %d taps", n)
	}
	if _, err := s.create("third", bridged); reason(err) != "QUOTA_EXCEEDED" {
		t.Errorf("a VM for which there is no address: %v", err)
	}
	s.gone("first")
	if got := s.running("third", bridged).GetAddresses(); got[len(got)-1].GetAddress() != "10.77.0.10" {
		t.Errorf("an address that is free again is not used: %v", got)
	}
	s.gone("second")
	s.gone("third")
	s.until("the taps are gone", func() bool { return taps(t) == 0 })
}

// taps counts what is on the bridge.
func taps(t *testing.T) int {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	return len(slices.DeleteFunc(all, func(i net.Interface) bool { return i.Name == "lo" || i.Name == "br0" }))
}
