package simkubelet

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

const (
	// followWait is how long the cloud may keep a question that it has no news for, and followSlack
	// what an answer takes.
	followWait  = 20 * time.Second
	followSlack = 30 * time.Second
	// pageSize and maxPage fit each other: user data has at most 64 KiB.
	pageSize = 200
	maxPage  = 32 << 20
	// goneDelay is how long the Node of a VM that is gone keeps its pods played: whoever removed
	// the VM on purpose removes the Node as well, and spares us the write.
	goneDelay = time.Second
)

// follow sees every change of the cloud's VMs until ctx ends. After any failure it looks at all of
// them again, since the cloud may be another one by then, with revisions of its own.
func (f *Fleet) follow(ctx context.Context) {
	for ctx.Err() == nil {
		var revision int64
		err := retry(ctx, f.options.Log, "list VMs", func() error {
			var err error
			revision, err = f.listAll(ctx)
			return err
		})
		for err == nil {
			var page *backendv1alpha1.ListVMsResponse
			if page, err = f.list(ctx, revision, followWait); err == nil {
				revision = f.observePage(page, revision)
			}
		}
		if ctx.Err() == nil {
			f.options.Log.Warn("Lost sight of the cloud", "error", err)
		}
	}
}

// listAll sees all VMs, takes those that it knew and that are not there for gone, and returns the
// last revision.
func (f *Fleet) listAll(ctx context.Context) (int64, error) {
	var revision int64
	seen := map[string]bool{}
	for more := true; more; {
		page, err := f.list(ctx, revision, 0)
		if err != nil {
			return 0, err
		}
		revision = f.observePage(page, revision)
		for _, vm := range page.GetVms() {
			seen[vm.GetId()] = true
		}
		more = page.GetMore()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, m := range f.machines {
		if !seen[id] {
			f.replaceLocked(&backendv1alpha1.VM{
				Id: id, Name: m.vm.GetName(), ProviderId: m.vm.GetProviderId(), State: backendv1alpha1.VMState_VM_STATE_GONE,
			})
		}
	}
	return revision, nil
}

func (f *Fleet) list(ctx context.Context, after int64, wait time.Duration) (*backendv1alpha1.ListVMsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+followSlack)
	defer cancel()
	request := &backendv1alpha1.ListVMsRequest{
		AfterRevision: after, Wait: durationpb.New(wait), MaxResults: pageSize, ClusterUid: f.options.ClusterUID,
	}
	page, err := f.backend.ListVMs(ctx, request, grpc.MaxCallRecvMsgSize(maxPage), grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	return page, nil
}

// observePage takes note of the VMs and returns the last one's revision.
func (f *Fleet) observePage(page *backendv1alpha1.ListVMsResponse, revision int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, vm := range page.GetVms() {
		f.replaceLocked(vm)
		revision = vm.GetRevision()
	}
	return revision
}

// replaceLocked notes a VM as it is now, and queues it when there may be something to do. It needs
// f.mu held.
func (f *Fleet) replaceLocked(vm *backendv1alpha1.VM) {
	m, known := f.machines[vm.GetId()]
	gone := vm.GetState() == backendv1alpha1.VMState_VM_STATE_GONE
	if !known {
		if gone && f.registered[vm.GetProviderId()] == nil {
			return // Came and went unseen, and nothing is left of it.
		}
		m = &machine{}
		f.machines[vm.GetId()] = m
	}
	m.vm = vm
	m.credentials.setPower(vm.GetState() == backendv1alpha1.VMState_VM_STATE_RUNNING)
	if vm.GetState() != backendv1alpha1.VMState_VM_STATE_RUNNING {
		m.interrupted = true
		f.leases.remove(m.kubelet)
	}
	if gone {
		f.queue.AddAfter(vm.GetId(), goneDelay)
		return
	}
	f.queue.Add(vm.GetId())
}
