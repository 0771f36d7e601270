package localcluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken in blocks, the first of which this process listens on as long as the cluster
// lives, and nobody connects to. It is the claim on the others: clusters side by side never share a
// block, not even while a component restarts and its port is free for a moment. Blocks lie below
// the ports that kernels hand out for outgoing connections.
const (
	firstPort = 20000
	lastPort  = 29999
	blockSize = 12
)

// The places of a block.
const (
	guardPort = iota
	etcdClientPort
	etcdPeerPort
	apiServerPort
	controllerManagerPort
	schedulerPort
	kwokPort
	firstSparePort
)

// portBlock is a claim on blockSize ports of 127.0.0.1. The zero value holds none.
type portBlock struct {
	guard net.Listener
	first int
}

// claimPorts returns a block none of whose ports anybody listens on. The error means that there is
// none.
func claimPorts() (portBlock, error) {
	const blocks = (lastPort - firstPort + 1) / blockSize
	start := rand.IntN(blocks)
	for i := range blocks {
		first := firstPort + (start+i)%blocks*blockSize
		guard, err := listen(first)
		if err != nil {
			continue
		}
		if restFree(first) {
			return portBlock{guard: guard, first: first}, nil
		}
		if err := guard.Close(); err != nil {
			return portBlock{}, fmt.Errorf("give up port: %w", err)
		}
	}
	return portBlock{}, errors.New("claim ports: all are in use")
}

func restFree(first int) bool {
	for port := first + 1; port < first+blockSize; port++ {
		l, err := listen(port)
		if err != nil || l.Close() != nil {
			return false
		}
	}
	return true
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
}

// address returns host:port of a place in the block.
func (b portBlock) address(place int) string { return fmt.Sprintf("127.0.0.1:%d", b.port(place)) }

// url returns the https address of a place in the block.
func (b portBlock) url(place int) string { return "https://" + b.address(place) }

func (b portBlock) port(place int) int { return b.first + place }

// SpareAddress returns an address on this machine that is this cluster's alone: for a process
// beside it. Each call returns another; the error means that there are no more.
func (c *Cluster) SpareAddress() (string, error) {
	place := firstSparePort + int(c.spares.Add(1)) - 1
	if place >= blockSize {
		return "", fmt.Errorf("claim ports: all %d spare ones of the cluster are in use", blockSize-firstSparePort)
	}
	return c.layout.ports.address(place), nil
}

// release gives the block back. Doing so again does nothing.
func (b portBlock) release() error {
	if b.guard == nil {
		return nil
	}
	if err := b.guard.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("give up port: %w", err)
	}
	return nil
}
