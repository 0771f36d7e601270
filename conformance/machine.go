package conformance

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// machine is a machine that a check asks for, and what core would remember of it.
type machine struct {
	t *trial
	// ref, cluster, spec, secrets, userData and tags go into each call; a check may change them
	// before the first.
	ref      *driverv1alpha1.MachineRef
	cluster  string
	spec     []byte
	secrets  map[string][]byte
	userData []byte
	tags     map[string]string
	epoch    int64
	// providerID and state are what the driver answered last.
	providerID string
	state      []byte
	intended   bool
}

// machine returns a machine that nobody has asked for yet. The check's end deletes it.
func (t *trial) machine() *machine {
	uid := strings.ToLower(random())
	m := &machine{
		t: t, cluster: t.clusterUID, spec: t.config.ProviderSpec, secrets: t.secrets, userData: []byte("#cloud-config\n"),
		ref: &driverv1alpha1.MachineRef{Namespace: "conformance", Name: "conf-" + uid[:10], Uid: uid},
	}
	t.made = append(t.made, m)
	return m
}

// meta is that of a new attempt.
func (m *machine) meta() *driverv1alpha1.RequestMeta {
	return &driverv1alpha1.RequestMeta{RequestId: random(), ClusterUid: m.cluster, LeaderEpoch: m.epoch}
}

func (m *machine) provider() *driverv1alpha1.ProviderContext {
	return &driverv1alpha1.ProviderContext{ProviderSpec: m.spec, Secrets: m.secrets}
}

// createRequest is what core would send.
func (m *machine) createRequest() *driverv1alpha1.CreateMachineRequest {
	return &driverv1alpha1.CreateMachineRequest{
		Meta: m.meta(), Machine: m.ref, Provider: m.provider(), UserData: m.userData, LastKnownState: m.state, Tags: m.tags,
	}
}

// create asks for the machine once, after it was written down that it will.
func (m *machine) create(ctx context.Context) (*driverv1alpha1.Machine, error) {
	m.intend()
	return m.send(ctx, m.createRequest())
}

// intend writes down that the machine may exist from now on.
func (m *machine) intend() {
	if m.intended {
		return
	}
	if err := m.t.journal.intend(m.cluster, m.ref); err != nil {
		m.t.fatalf("%v", err)
	}
	m.intended = true
}

// send sends a create, whatever is in it.
func (m *machine) send(ctx context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
	_, mutation, _ := m.t.deadlines()
	ctx, cancel := context.WithTimeout(ctx, mutation)
	defer cancel()
	answer, err := m.t.machines.CreateMachine(ctx, r)
	m.rememberPartial(err)
	return m.remember(answer.GetMachine()), err
}

// get asks for the machine.
func (m *machine) get(ctx context.Context) (*driverv1alpha1.Machine, error) {
	timeout, _, _ := m.t.deadlines()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := m.t.machines.GetMachineStatus(ctx, &driverv1alpha1.GetMachineStatusRequest{
		Meta: m.meta(), Machine: m.ref, Provider: m.provider(), ProviderId: m.providerID, LastKnownState: m.state,
	})
	return m.remember(answer.GetMachine()), err
}

// remove asks once for nothing of the machine to be left, and returns what is.
func (m *machine) remove(ctx context.Context) (*driverv1alpha1.Machine, error) {
	_, mutation, _ := m.t.deadlines()
	ctx, cancel := context.WithTimeout(ctx, mutation)
	defer cancel()
	answer, err := m.t.machines.DeleteMachine(ctx, &driverv1alpha1.DeleteMachineRequest{
		Meta: m.meta(), Machine: m.ref, Provider: m.provider(), ProviderId: m.providerID, LastKnownState: m.state,
	})
	return m.remember(answer.GetMachine()), err
}

// remember keeps what core would keep of an answer.
func (m *machine) remember(answer *driverv1alpha1.Machine) *driverv1alpha1.Machine {
	if answer == nil {
		return nil
	}
	if m.providerID != "" && answer.GetProviderId() != "" && answer.GetProviderId() != m.providerID {
		m.t.errorf("the provider_id %s has become %s", m.providerID, answer.GetProviderId())
	}
	if answer.GetProviderId() != "" {
		m.providerID = answer.GetProviderId()
	}
	m.state = answer.GetLastKnownState()
	return answer
}

// rememberPartial keeps what core would keep of a create that failed half-way.
func (m *machine) rememberPartial(err error) {
	for _, detail := range status.Convert(err).Details() {
		partial, _ := detail.(*driverv1alpha1.PartialState)
		if n := len(partial.GetLastKnownState()); n > contract.MaxPartialStateBytes {
			m.t.errorf("a PartialState has a last_known_state of %d bytes, at most %d are allowed", n, contract.MaxPartialStateBytes)
		}
		m.providerID = cmp.Or(m.providerID, partial.GetProviderId())
		if state := partial.GetLastKnownState(); state != nil {
			m.state = state
		}
	}
}

// forget loses what was answered, as a core does that was restored from a backup.
func (m *machine) forget() { m.providerID, m.state = "", nil }

// running creates the machine until its VM runs, and returns what the driver says of it then.
func (m *machine) running(ctx context.Context) *driverv1alpha1.Machine {
	var now *driverv1alpha1.Machine
	m.until(ctx, "to run", m.t.config.Timeouts.Running.Duration, func(ctx context.Context) (time.Duration, error) {
		var err error
		if now, err = m.create(ctx); err != nil {
			return 0, err
		}
		switch now.GetState() {
		case driverv1alpha1.MachineState_MACHINE_STATE_RUNNING:
			return 0, nil
		case driverv1alpha1.MachineState_MACHINE_STATE_FAILED:
			m.t.fatalf("the machine failed: %s: %s", now.GetReason(), now.GetMessage())
		}
		return now.GetOperation().GetPollAfter().AsDuration(), errNotYet
	})
	return now
}

// gone deletes the machine until nothing of it is left.
func (m *machine) gone(ctx context.Context) {
	if !m.intended {
		return
	}
	m.until(ctx, "to be gone", m.t.config.Timeouts.Gone.Duration, func(ctx context.Context) (time.Duration, error) {
		now, err := m.remove(ctx)
		if err == nil && now != nil {
			err = errNotYet
		}
		return now.GetOperation().GetPollAfter().AsDuration(), err
	})
	if err := m.t.journal.gone(m.ref); err != nil {
		m.t.fatalf("%v", err)
	}
	m.intended = false
}

// errNotYet says that a call has answered, but not yet what is waited for.
var errNotYet = errors.New("not yet")

// The shortest and the longest time between two looks.
const (
	shortestPoll = 20 * time.Millisecond
	longestPoll  = 5 * time.Second
)

// until calls step, in turn and no sooner than the driver wants to be asked again, until it returns
// nil. As core does, it waits for a pending operation, and for as long as a rate limit says. Any
// other error ends the check. The limit is the cloud's: waiting for a turn does not count.
func (m *machine) until(ctx context.Context, what string, limit time.Duration, step func(context.Context) (time.Duration, error)) {
	began := time.Now()
	for {
		var wait time.Duration
		var err error
		began = began.Add(m.t.inTurn(func() { wait, err = step(ctx) }))
		if err == nil {
			return
		}
		limited, isLimited := rateLimited(err)
		if !errors.Is(err, errNotYet) && !pending(err) && !isLimited {
			m.t.fatalf("while waiting for the machine %s: %s: %s", what, status.Code(err), status.Convert(err).Message())
		}
		if time.Since(began) > limit {
			m.t.fatalf("waited %s in vain for the machine %s", limit, what)
		}
		select {
		case <-time.After(max(min(max(wait, shortestPoll), longestPoll), min(limited, limit))):
		case <-ctx.Done():
			m.t.fatalf("stopped while waiting for the machine %s", what)
		}
	}
}
