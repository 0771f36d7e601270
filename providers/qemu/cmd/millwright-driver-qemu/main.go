// Command millwright-driver-qemu is the driver of VMs that QEMU runs on this host. The VMs are
// processes of their own: they go on when the driver ends. See docs/qemu.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/millwright-dev/millwright/providers/qemu/driver"
	"github.com/millwright-dev/millwright/providers/qemu/spec"
	"github.com/millwright-dev/millwright/providers/qemu/vm"
	"github.com/millwright-dev/millwright/sdk"
)

// version is set by the linker.
var version = "dev"

// settings are what the flags say.
type settings struct {
	state, images, memory  string
	addresses, nameservers string
	driver                 driver.Options
	serve                  sdk.Options
}

func main() {
	var level slog.Level
	s := settings{driver: driver.Options{Version: version}}
	flag.TextVar(&level, "log-level", slog.LevelInfo, "how much to log: DEBUG has every call with its messages, redacted")
	flag.StringVar(&s.serve.Endpoint, "endpoint", "", "where to serve, as unix:///path or tcp://host:port (default $MILLWRIGHT_ENDPOINT); nowhere else but to core where core has started it")
	flag.StringVar(&s.serve.TracingEndpoint, "tracing-endpoint", "", "collector of OpenTelemetry traces, as https://host:port or unix:///path (default $MILLWRIGHT_TRACING_ENDPOINT, else none)")
	flag.StringVar(&s.driver.Name, "name", "", "what the driver is called, so that several can serve one core (default qemu)")
	flag.StringVar(&s.state, "state-dir", "", "the folder that keeps the VMs; it is made where its parent is there. Required")
	flag.StringVar(&s.images, "image-dir", "", "the folder with images and kernels that users may name. Required")
	flag.StringVar(&s.driver.QEMU, "qemu", program(), "QEMU's system emulator")
	flag.StringVar(&s.driver.QEMUImg, "qemu-img", "qemu-img", "QEMU's program for disk images")
	flag.StringVar(&s.driver.Accelerator, "accelerator", "", "kvm or tcg (default kvm where a VM boots with it, else tcg)")
	flag.StringVar(&s.memory, "memory", "", "what all VMs may have together, as 16Gi (default the host's memory)")
	flag.DurationVar(&s.driver.ShutdownGrace, "shutdown-grace", 30*time.Second, "how long a VM that is deleted may take to shut down")
	flag.StringVar(&s.driver.Bridge.Name, "bridge", "", "the bridge of VMs with the network bridge; takes CAP_NET_ADMIN")
	flag.StringVar(&s.addresses, "bridge-addresses", "", "the addresses that VMs on the bridge get, as 10.77.0.10-10.77.0.99/24")
	flag.TextVar(&s.driver.Bridge.Gateway, "bridge-gateway", netip.Addr{}, "the gateway of VMs on the bridge")
	flag.StringVar(&s.nameservers, "bridge-nameservers", "", "the name servers of VMs on the bridge, with commas between them")
	flag.Parse()
	s.serve.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		s.serve.Log.Error("driver ended", "error", err)
		os.Exit(1)
	}
}

// program is QEMU's emulator of this host's architecture.
func program() string {
	if runtime.GOARCH == "arm64" {
		return "qemu-system-aarch64"
	}
	return "qemu-system-x86_64"
}

func run(ctx context.Context, s settings) error {
	if err := errors.Join(s.readFolders(), s.readLimits(), s.readBridge()); err != nil {
		return err
	}
	store, err := vm.OpenStore(s.state)
	if err != nil {
		return fmt.Errorf("--state-dir: %w", err)
	}
	return sdk.Serve(ctx, driver.New(ctx, store, s.driver), s.serve)
}

func (s *settings) readFolders() error {
	if s.state == "" {
		return errors.New("--state-dir: say where VMs are kept, such as /var/lib/millwright-qemu")
	}
	if s.images == "" {
		return errors.New("--image-dir: say where images are")
	}
	path, err := filepath.Abs(s.images)
	if err != nil {
		return fmt.Errorf("--image-dir: %w", err)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return fmt.Errorf("--image-dir: %s is no folder", path)
	}
	s.driver.Images = vm.Images(path)
	return nil
}

func (s *settings) readLimits() error {
	switch s.driver.Accelerator {
	case "", vm.KVM, vm.TCG:
	default:
		return fmt.Errorf("--accelerator: is %q; choose kvm or tcg, or leave it out", s.driver.Accelerator)
	}
	if s.driver.ShutdownGrace < 0 {
		return fmt.Errorf("--shutdown-grace: is %s; give a duration of 0 or more", s.driver.ShutdownGrace)
	}
	if s.memory != "" {
		if s.driver.MemoryMiB = spec.Mebibytes(s.memory); s.driver.MemoryMiB == 0 {
			return fmt.Errorf("--memory: is %q; write it as 512Mi or 16Gi", s.memory)
		}
		return nil
	}
	var host syscall.Sysinfo_t
	if err := syscall.Sysinfo(&host); err != nil {
		return fmt.Errorf("--memory: the host's cannot be found out: %w", err)
	}
	s.driver.MemoryMiB = int64(host.Totalram) * int64(host.Unit) >> 20
	return nil
}

// readBridge reads the flags about the bridge.
func (s *settings) readBridge() error {
	b := &s.driver.Bridge
	if b.Name == "" {
		return nil
	}
	span, bits, _ := strings.Cut(s.addresses, "/")
	first, last, _ := strings.Cut(span, "-")
	var errs [2]error
	b.First, errs[0] = netip.ParseAddr(first)
	b.Last, errs[1] = netip.ParseAddr(last)
	network, err := netip.ParsePrefix(first + "/" + bits)
	if err := errors.Join(errs[0], errs[1], err); err != nil || !b.First.Is4() || !network.Contains(b.Last) || b.Last.Less(b.First) {
		return fmt.Errorf("--bridge-addresses: is %q; write it as 10.77.0.10-10.77.0.99/24", s.addresses)
	}
	if b.Bits = network.Bits(); !network.Contains(b.Gateway) {
		return fmt.Errorf("--bridge-gateway: must be an address in %s", network.Masked())
	}
	if s.nameservers == "" {
		return nil
	}
	for text := range strings.SplitSeq(s.nameservers, ",") {
		server, err := netip.ParseAddr(text)
		if err != nil {
			return fmt.Errorf("--bridge-nameservers: %w", err)
		}
		b.Nameservers = append(b.Nameservers, server)
	}
	return nil
}
