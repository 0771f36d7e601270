package conformance

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/millwright-dev/millwright/proto/contract"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func loadChecks() []Check {
	return []Check{
		{
			ID: "fault/concurrent", Level: Must, Musts: []int{77}, Tier: Fault, run: concurrentMachines,
			Rule: "Calls for many machines at once do not mix: each machine gets its own VM, and each answer is about the machine that was asked for.",
		},
		{
			ID: "fault/probe-under-load", Level: Must, Musts: []int{14}, Tier: Fault, Hooks: true, run: probeUnderLoad,
			Rule: "IdentityService.Probe answers within a second also while the cloud answers nothing.",
		},
		{
			ID: "fault/huge-message", Level: Must, Musts: []int{33}, Tier: Fault, run: hugeMessage,
			Rule: "A request of almost 8 MiB is taken, one of more is refused, and the driver goes on.",
		},
		{
			ID: "fault/leak", Level: Should, Tier: Fault, Launch: true, run: leak,
			Rule: "Over many machines a driver's open files and memory do not grow.",
		},
	}
}

func concurrentMachines(ctx context.Context, t *trial) {
	if t.config.Crowd == 0 {
		t.notRun("it makes many machines at once: say how many the cloud has room for as crowd")
	}
	machines := make([]*machine, t.config.Crowd)
	for i := range machines {
		machines[i] = t.machine()
		machines[i].userData = fmt.Appendf(nil, "#cloud-config\n# %s\n", machines[i].ref.GetUid())
	}
	together(machines, func(m *machine) { m.running(ctx) })
	ids := map[string]string{}
	for _, m := range machines {
		if other, twice := ids[m.providerID]; twice {
			t.errorf("the machines %s and %s have one provider_id: %s", other, m.ref.GetUid(), m.providerID)
		}
		ids[m.providerID] = m.ref.GetUid()
		if t.backend == nil {
			continue
		}
		if vms := t.cloud.vms(ctx, m); len(vms) != 1 || !bytes.Equal(vms[0].GetUserData(), m.userData) {
			t.errorf("the machine %s has %d VMs, or another one's user data", m.ref.GetUid(), len(vms))
		}
	}
	together(machines, func(m *machine) { m.gone(ctx) })
}

// together does something for all machines at once.
func together(machines []*machine, do func(*machine)) {
	var all sync.WaitGroup
	for _, m := range machines {
		all.Go(func() { do(m) })
	}
	all.Wait()
}

func probeUnderLoad(ctx context.Context, t *trial) {
	n := min(t.maxRequests(), t.config.Crowd)
	creates, _ := t.cloud.operations(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	for range n {
		m := t.machine()
		m.intend()
		t.cloud.injectOnce(ctx, m, creates[0], &backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD})
		waiting.Go(func() { _ = m.createOnly(unjudged(ctx)) })
	}
	t.watch(ctx)
	for range 5 {
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := t.identity.Probe(limited, &driverv1alpha1.ProbeRequest{})
		cancel()
		if took := time.Since(began); err != nil || took > time.Second {
			t.errorf("with %d creates under way the probe took %s: %v", n, took.Round(time.Millisecond), err)
		}
	}
	t.cloud.removeFaults(ctx)
}

func hugeMessage(ctx context.Context, t *trial) {
	m := t.machine()
	m.intend()
	r := m.createRequest()
	r.Tags = map[string]string{"huge": strings.Repeat("x", contract.MaxMessageBytes)}
	if _, err := t.machines.CreateMachine(unjudged(ctx), r, grpc.MaxCallSendMsgSize(2*contract.MaxMessageBytes)); err == nil {
		t.errorf("a request of more than 8 MiB was accepted")
	}
	if err := t.reach(ctx); err != nil {
		t.fatalf("after a request of more than 8 MiB: %v", err)
	}
	// A later version's field is ignored, whatever its size.
	largest := m.createRequest()
	padding := make([]byte, contract.MaxMessageBytes-proto.Size(largest)-1024)
	largest.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 9999, protowire.BytesType), padding))
	if _, err := m.send(ctx, largest); err != nil {
		t.errorf("a request of almost 8 MiB: %v", err)
	}
	m.running(ctx)
}

// What may come on top after the first tenth of the cycles.
const (
	moreFiles  = 5
	moreMemory = 16 << 20
)

func leak(ctx context.Context, t *trial) {
	cycles := t.config.Cycles
	if cycles == 0 {
		t.notRun("it takes time: say how many machines to make and delete as cycles")
	}
	measure := func() (files, memory int) {
		files, memory, err := usageOf(t.driver.Process().Pid)
		if err != nil {
			t.notRun("this system does not tell what a process uses: " + err.Error())
		}
		return files, memory
	}
	var filesBefore, memoryBefore int
	for i := range cycles {
		m := t.machine()
		if _, err := m.create(ctx); err != nil {
			t.fatalf("cycle %d: %v", i, err)
		}
		m.gone(ctx)
		t.made = t.made[:len(t.made)-1]
		if i == cycles/10 {
			filesBefore, memoryBefore = measure()
		}
	}
	files, memory := measure()
	if files > filesBefore+moreFiles || memory > memoryBefore+moreMemory {
		t.errorf("over %d machines the driver's open files went from %d to %d, and its memory from %d to %d KiB",
			cycles-cycles/10, filesBefore, files, memoryBefore>>10, memory>>10)
	}
}

// usageOf returns how many files a process has open, and how many bytes of its memory are resident,
// as Linux tells.
func usageOf(pid int) (files, memory int, err error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	open, err := os.ReadDir(filepath.Join(folder, "fd"))
	if err != nil {
		return 0, 0, fmt.Errorf("count the open files: %w", err)
	}
	raw, err := os.ReadFile(filepath.Join(folder, "statm"))
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory: %w", err)
	}
	fields := strings.Fields(string(raw))
	pages, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory: %w", err)
	}
	return len(open), pages * os.Getpagesize(), nil
}
