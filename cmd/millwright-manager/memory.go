package main

import (
	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"
)

// memoryShare is how much of its cgroup's memory Go may use. The rest is for what Go does not
// count, and for the moment in which garbage is collected.
const memoryShare = 0.9

// limitMemory has Go collect garbage more often before the kernel ends the process for want of
// memory, unless $GOMEMLIMIT says when.
func limitMemory(log logr.Logger, cgroup memlimit.Provider) {
	limit, err := memlimit.Set(memlimit.WithRatio(memoryShare), memlimit.WithProvider(cgroup))
	if err != nil {
		log.Info("The cgroup's memory limit cannot be read, so Go has none; $GOMEMLIMIT sets one", "error", err.Error())
		return
	}
	log.V(1).Info("Go's memory is limited", "bytes", limit)
}

// useSmallerBuffers has gRPC keep buffers of each power of two from 16 KiB to 1 MiB. Its own choice
// goes from 32 KiB straight to 1 MiB; long user data and a page of VMs lie between. It is called
// before gRPC is used.
func useSmallerBuffers() error {
	pool, err := mem.NewBinaryTieredBufferPool(8, 12, 14, 15, 16, 17, 18, 19, 20)
	if err == nil {
		experimental.SetDefaultBufferPool(pool)
	}
	return err
}
