// Command millwright-driver-qemu is the driver of VMs that QEMU runs on this host. The VMs are
// processes of their own: they go on when the driver ends. See docs/qemu.md.
package main

import (
	"cmp"
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

func main() {
	var level slog.Level
	var state string
	var serve sdk.Options
	o := driver.Options{Version: version}
	flag.TextVar(&level, "log-level", slog.LevelInfo, "how much to log: DEBUG has every call with its messages, redacted")
	flag.StringVar(&serve.Endpoint, "endpoint", "", "where to serve, as unix:///path or tcp://host:port (default $MILLWRIGHT_ENDPOINT); nowhere else but to core where core has started it")
	flag.StringVar(&serve.TracingEndpoint, "tracing-endpoint", "", "collector of OpenTelemetry traces, as https://host:port or unix:///path (default $MILLWRIGHT_TRACING_ENDPOINT, else none)")
	flag.StringVar(&o.Name, "name", "qemu", "what the driver is called, so that several can serve one core")
	flag.StringVar(&state, "state-dir", "", "the folder that keeps the VMs; it is made where its parent is there. Required")
	flag.StringVar((*string)(&o.Images), "image-dir", "", "the folder with images and kernels that users may name. Required")
	flag.StringVar(&o.QEMU, "qemu", program(), "QEMU's system emulator")
	flag.StringVar(&o.QEMUImg, "qemu-img", "qemu-img", "QEMU's program for disk images")
	flag.StringVar(&o.Accelerator, "accelerator", "", "kvm or tcg (default kvm where a VM boots with it, else tcg)")
	flag.Func("memory", "what all VMs may have together, as 16Gi (default the host's memory)", func(text string) error {
		if o.MemoryMiB = spec.Mebibytes(text); o.MemoryMiB == 0 {
			return errors.New("write it as 512Mi or 16Gi")
		}
		return nil
	})
	flag.DurationVar(&o.ShutdownGrace, "shutdown-grace", 30*time.Second, "how long a VM that is deleted may take to shut down")
	flag.StringVar(&o.Bridge.Name, "bridge", "", "the bridge of VMs with the network bridge; takes CAP_NET_ADMIN")
	flag.Func("bridge-addresses", "the addresses that VMs on the bridge get, as 10.77.0.10-10.77.0.99/24", func(text string) error {
		return readAddresses(text, &o.Bridge)
	})
	flag.TextVar(&o.Bridge.Gateway, "bridge-gateway", netip.Addr{}, "the gateway of VMs on the bridge")
	flag.Func("bridge-nameservers", "the name servers of VMs on the bridge, with commas between them", func(text string) error {
		return readNameservers(text, &o.Bridge)
	})
	showVersion := flag.Bool("version", false, "print the version, and do nothing else")
	flag.Parse()
	if *showVersion {
		fmt.Println("millwright-driver-qemu", version)
		return
	}
	serve.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, state, o, serve); err != nil {
		serve.Log.Error("driver ended", "error", err)
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

// readAddresses reads the range of addresses on a bridge.
func readAddresses(text string, b *vm.Bridge) error {
	first, rest, _ := strings.Cut(text, "-")
	last, bits, _ := strings.Cut(rest, "/")
	b.First, _ = netip.ParsePrefix(first + "/" + bits) // what cannot be read contains nothing
	b.Last, _ = netip.ParseAddr(last)
	if !b.First.Addr().Is4() || !b.First.Contains(b.Last) || b.Last.Less(b.First.Addr()) {
		return errors.New("write it as 10.77.0.10-10.77.0.99/24")
	}
	return nil
}

func readNameservers(text string, b *vm.Bridge) error {
	for word := range strings.SplitSeq(text, ",") {
		server, err := netip.ParseAddr(word)
		if err != nil {
			return err
		}
		b.Nameservers = append(b.Nameservers, server)
	}
	return nil
}

func run(ctx context.Context, state string, o driver.Options, serve sdk.Options) error {
	if err := complete(state, &o); err != nil {
		return err
	}
	store, err := vm.OpenStore(state)
	if err != nil {
		return fmt.Errorf("--state-dir: %w", err)
	}
	return sdk.Serve(ctx, driver.New(ctx, store, o), serve)
}

// complete checks what flags say, and fills in what the host knows.
func complete(state string, o *driver.Options) error {
	images, err := filepath.Abs(string(o.Images))
	if err != nil {
		return fmt.Errorf("--image-dir: %w", err)
	}
	var host syscall.Sysinfo_t
	if err := syscall.Sysinfo(&host); err != nil {
		return fmt.Errorf("--memory: the host's cannot be found out: %w", err)
	}
	info, err := os.Stat(images)
	onBridge := o.Bridge.Name != ""
	switch {
	case state == "":
		return errors.New("--state-dir: say where VMs are kept, such as /var/lib/millwright-qemu")
	case o.Images == "":
		return errors.New("--image-dir: say where images are")
	case err != nil || !info.IsDir():
		return fmt.Errorf("--image-dir: %s is no folder", images)
	case o.Accelerator != "" && o.Accelerator != vm.KVM && o.Accelerator != vm.TCG:
		return fmt.Errorf("--accelerator: is %q; choose kvm or tcg, or leave it out", o.Accelerator)
	case o.ShutdownGrace < 0:
		return fmt.Errorf("--shutdown-grace: is %s; give a duration of 0 or more", o.ShutdownGrace)
	case onBridge && !o.Bridge.First.IsValid():
		return errors.New("--bridge-addresses: say which VMs on the bridge get, such as 10.77.0.10-10.77.0.99/24")
	case onBridge && !o.Bridge.First.Contains(o.Bridge.Gateway):
		return fmt.Errorf("--bridge-gateway: must be an address in %s", o.Bridge.First.Masked())
	}
	o.Images = vm.Images(images)
	o.MemoryMiB = cmp.Or(o.MemoryMiB, int64(host.Totalram)*int64(host.Unit)>>20)
	return nil
}
