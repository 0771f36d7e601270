package vm

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Bridge is a bridge of the host, and the addresses on it that VMs get.
type Bridge struct {
	// Name is the bridge's; empty where there is none.
	Name string
	// First is the first address that VMs get, with the prefix of their network; Last the last.
	First   netip.Prefix
	Last    netip.Addr
	Gateway netip.Addr
	// Nameservers may be empty.
	Nameservers []netip.Addr
}

// mac is a MAC address that follows from an IPv4 address: two VMs on a bridge never share one.
// 52:54 begins those that QEMU's users make up themselves.
func mac(address netip.Addr) string {
	four := address.As4()
	return fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", four[0], four[1], four[2], four[3])
}

// networkConfig is cloud-init's network configuration, version 2, of a VM on the bridge. JSON is
// YAML.
func (b Bridge) networkConfig(address netip.Addr) []byte {
	ethernet := map[string]any{
		"match":     map[string]any{"macaddress": mac(address)},
		"addresses": []netip.Prefix{netip.PrefixFrom(address, b.First.Bits())},
		"routes":    []map[string]any{{"to": "0.0.0.0/0", "via": b.Gateway}},
		"accept-ra": false,
	}
	if len(b.Nameservers) > 0 {
		ethernet["nameservers"] = map[string]any{"addresses": b.Nameservers}
	}
	config, _ := json.Marshal(map[string]any{"version": 2, "ethernets": map[string]any{"id0": ethernet}}) // these can be written
	return config
}

// openTap makes a tap on the bridge. It is there for as long as somebody has the file open: it goes
// with the VM's process, however that ends. It takes CAP_NET_ADMIN.
func (b Bridge) openTap() (*os.File, error) {
	tap, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := b.attach(tap); err != nil {
		tap.Close()
		return nil, fmt.Errorf("make a tap on the bridge %s: %w", b.Name, err)
	}
	return tap, nil
}

// attach gives the tap a name, which the kernel chooses, has it be up, and puts it on the bridge.
func (b Bridge) attach(tap *os.File) error {
	request, err := unix.NewIfreq("mw%d")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(int(tap.Fd()), unix.TUNSETIFF, request); err != nil {
		return err
	}
	control, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(control)      //nolint:errcheck // nothing was written to it
	request.SetUint16(unix.IFF_UP) // the kernel has put the tap's name into the request
	if err := unix.IoctlIfreq(control, unix.SIOCSIFFLAGS, request); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(control, unix.SIOCGIFINDEX, request); err != nil {
		return err
	}
	port, err := unix.NewIfreq(b.Name)
	if err != nil {
		return err
	}
	port.SetUint32(request.Uint32())
	return unix.IoctlIfreq(control, unix.SIOCBRADDIF, port)
}
