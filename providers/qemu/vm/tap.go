package vm

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// openTap makes a tap on a bridge. It is there for as long as somebody has the file open: it goes
// with the VM's process, however that ends. It takes CAP_NET_ADMIN.
func openTap(bridge string) (*os.File, error) {
	tap, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := attach(tap, bridge); err != nil {
		tap.Close()
		return nil, fmt.Errorf("make a tap on the bridge %s: %w", bridge, err)
	}
	return tap, nil
}

// attach gives the tap a name, which the kernel chooses, has it be up, and puts it on the bridge.
func attach(tap *os.File, bridge string) error {
	request, err := unix.NewIfreq("mw%d")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(int(tap.Fd()), unix.TUNSETIFF, request); err != nil {
		return err
	}
	made, err := net.InterfaceByName(request.Name())
	if err != nil {
		return err
	}
	control, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(control) //nolint:errcheck // nothing was written to it
	up, err := unix.NewIfreq(made.Name)
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(control, unix.SIOCSIFFLAGS, up); err != nil {
		return err
	}
	port, err := unix.NewIfreq(bridge)
	if err != nil {
		return err
	}
	port.SetUint32(uint32(made.Index))
	return unix.IoctlIfreq(control, unix.SIOCBRADDIF, port)
}
