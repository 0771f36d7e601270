//go:build !linux

package transport

import (
	"syscall"
	"time"
)

// giveUpAfter leaves it to keepalives where the kernel has no such timeout.
func giveUpAfter(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
