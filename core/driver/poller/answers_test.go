package poller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const (
	driverName = "sawmill"
	clusterUID = "cluster-1"
	prefix     = "sawmill:///"
)

// running is a proper answer about a machine.
func running(ref *driverv1alpha1.MachineRef) *driverv1alpha1.Machine {
	return &driverv1alpha1.Machine{
		Ref:        ref,
		ClusterUid: clusterUID,
		ProviderId: prefix + ref.GetUid(),
		State:      driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
	}
}

// says is an error as a proper driver makes it.
func says(code codes.Code, reason, message string) error {
	s, err := status.New(code, message).WithDetails(&errdetails.ErrorInfo{Domain: driverName, Reason: reason})
	if err != nil {
		panic(err)
	}
	return s.Err()
}

// script is a driver whose lists a string of bytes tells: the upper three bits of each say what,
// the lower five which. After the last it begins anew, with other machines.
type script struct {
	driverv1alpha1.MachineServiceClient
	steps []byte
	at    int
	// What it has said so far.
	pages  []*driverv1alpha1.ListMachinesResponse
	failed error
	broken bool
}

// maxSaid is how many pages a script has. What never ends is tried below.
const maxSaid = 64

// What a script can say.
const (
	sayMachine = iota << 5
	sayBroken
	sayLeftover
	sayAge
	endPage
	endPageAs
	endList
	failList
)

func (s *script) ListMachines(
	context.Context, *driverv1alpha1.ListMachinesRequest, ...grpc.CallOption,
) (*driverv1alpha1.ListMachinesResponse, error) {
	page := &driverv1alpha1.ListMachinesResponse{}
	s.pages = append(s.pages, page)
	if len(s.pages) > maxSaid {
		s.failed = says(codes.Internal, "PROVIDER_INTERNAL", "enough is said")
		return nil, s.failed
	}
	fresh := fmt.Sprintf("page %d", len(s.pages))
	for range len(s.steps) {
		step := s.steps[s.at%len(s.steps)]
		lap, which := s.at/len(s.steps), int(step&31)
		s.at++
		m := running(&driverv1alpha1.MachineRef{Namespace: "ns", Name: "m", Uid: fmt.Sprintf("uid-%d-%d", which, lap)})
		switch step &^ 31 {
		case sayBroken:
			s.broken = true
			breakMachine(m, which)
		case sayLeftover:
			m.State, m.ProviderId, m.Reason = driverv1alpha1.MachineState_MACHINE_STATE_FAILED, "", "Leftover"
		case sayAge:
			m.CreateTime = &timestamppb.Timestamp{Seconds: int64(which-16) << 40, Nanos: int32(which)}
		case endPage:
			page.NextPageToken = fresh
			return page, nil
		case endPageAs:
			page.NextPageToken = fmt.Sprint(which)
			return page, nil
		case endList:
			return page, nil
		case failList:
			s.failed = []error{
				status.Error(codes.Unimplemented, ""), says(codes.InvalidArgument, "PAGE_TOKEN_EXPIRED", "too old"),
				status.Error(codes.Unavailable, ""), says(codes.Internal, "PROVIDER_INTERNAL", "out of order"),
			}[which%4]
			return nil, s.failed
		}
		page.Machines = append(page.Machines, m)
	}
	if len(s.steps) > 0 {
		page.NextPageToken = fresh
	}
	return page, nil
}

// breakMachine makes of a machine what must not be in a list.
func breakMachine(m *driverv1alpha1.Machine, how int) {
	switch how % 8 {
	case 0:
		m.Ref = nil
	case 1:
		m.Ref.Uid = ""
	case 2:
		m.ClusterUid = "another"
	case 3:
		m.State = driverv1alpha1.MachineState_MACHINE_STATE_UNSPECIFIED
	case 4:
		m.ProviderId = "other:///1"
	case 5:
		m.ProviderId = prefix + "1\n2"
	case 6:
		m.DuplicateProviderIds = []string{"other:///1"}
	case 7:
		m.ProviderId = prefix + strings.Repeat("1", 1000)
	}
}

// wrong says why what was said is not a complete list; empty when it is.
func (s *script) wrong() string {
	if s.failed != nil {
		return "a page failed"
	}
	uids, tokens := map[string]bool{}, map[string]bool{"": true}
	for i, page := range s.pages {
		for _, m := range page.GetMachines() {
			if uids[m.GetRef().GetUid()] {
				return "a machine came twice"
			}
			uids[m.GetRef().GetUid()] = true
		}
		last, token := i == len(s.pages)-1, page.GetNextPageToken()
		if token == "" {
			return ""
		}
		if tokens[token] || last {
			return "the last page is not there"
		}
		tokens[token] = true
	}
	return "nothing was said"
}

// offline is a poller without a driver, and a session with a client.
func offline(client driverv1alpha1.MachineServiceClient) (*Poller, *connection.Session) {
	cfg := connection.Config{Name: driverName, ClusterUID: clusterUID, LeaderEpoch: func() int64 { return 1 }}
	s := connection.NewSession(cfg, nil)
	s.Machines = client
	s.Capabilities = connection.Capabilities{ProviderIDPrefix: prefix, Deadlines: connection.Deadlines{ListPage: time.Minute}}
	return New(direct{}, testPolling, clock.RealClock{}), s
}

// direct is a client that calls at once, and whom nothing wakes.
type direct struct{}

func (direct) Call(
	ctx context.Context, s *connection.Session, timeout time.Duration, call func(context.Context) error,
) *instance.Failure {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Call(ctx, call)
}

func (direct) Wake(types.NamespacedName) {}

func (direct) PollSoon() {}

// FuzzList has a driver list anything.
func FuzzList(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{sayMachine | 1, sayMachine | 2, endPage, sayLeftover | 3, endList})
	f.Add([]byte{sayMachine | 1, endPage, sayMachine | 1, endList})
	f.Add([]byte{endPageAs | 1, endPageAs | 2, endPageAs | 1})
	f.Add([]byte{sayMachine | 1, endPageAs | 1})
	f.Add([]byte{sayAge | 1, sayAge | 16, sayAge | 30, endList})
	for how := range byte(8) {
		f.Add([]byte{sayMachine | 1, endPage, sayBroken | how, endList})
	}
	for how := range byte(4) {
		f.Add([]byte{sayMachine | 1, endPage, failList | how})
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		said := &script{steps: steps}
		p, s := offline(said)
		machines, failure := p.List(t.Context(), s, machine("asking"))
		if why := said.wrong(); (why == "") != (failure == nil) || (failure == nil) != (machines != nil) {
			t.Fatalf("%v, although %q", failure, why)
		}
		if failure != nil {
			if !legible(failure.Reason, wire.MaxReason) || !legible(failure.Message, wire.MaxMessage) {
				t.Errorf("the failure %v is not fit for a condition", failure)
			}
			return
		}
		checkListed(t, p, s, machines)
		var broken *instance.Failure
		for _, listed := range machines {
			one, failure := s.Reader().Owned(machine("asking"), listed)
			if failure != nil {
				broken = failure
				continue
			}
			checkOwned(t, one)
		}
		if (broken != nil) != said.broken {
			t.Fatalf("%v, although broken is %t", broken, said.broken)
		}
	})
}

// checkListed records a list: machines that it does not show are asked for, and none is declared
// gone.
func checkListed(t *testing.T, p *Poller, s *connection.Session, machines map[string]*driverv1alpha1.Machine) {
	t.Helper()
	now := p.clock.Now()
	var want []string
	for i := range 8 {
		m := wire.Machine{Namespace: "ns", Name: "m", UID: fmt.Sprintf("uid-%d-0", i), Spec: []byte(`{}`)}
		p.schedule.track(m, instance.PollPending, now.Add(-time.Hour), time.Time{})
		if _, shown := machines[m.UID]; !shown {
			want = append(want, m.UID)
		}
	}
	var missing []string
	for _, m := range p.recordList(s, wire.Machine{Spec: []byte(`{}`)}.Account(), machines, poll{began: now, ended: now}) {
		missing = append(missing, m.UID)
	}
	if !slices.Equal(want, missing) {
		t.Errorf("%v are asked for, want %v", missing, want)
	}
	for uid := range p.schedule.machines {
		seen, polled := p.schedule.observed(uid)
		if polled && seen.Failure != nil && seen.Failure.Class != instance.OutcomeUnknown {
			t.Errorf("%s: a list says %v", uid, seen.Failure)
		}
	}
}

// checkOwned holds a listed machine to what core deletes orphans by.
func checkOwned(t *testing.T, one wire.OwnedResource) {
	t.Helper()
	if one.ClusterUID != clusterUID || one.Machine.UID == "" || string(one.Machine.Spec) != string(machine("asking").Spec) {
		t.Errorf("the list of owned resources holds %+v", one)
	}
	for _, id := range one.ProviderIDs {
		if !strings.HasPrefix(id, prefix) || !legible(id, 512) {
			t.Errorf("the list of owned resources holds the providerID %q", id)
		}
	}
	if !one.Created.IsZero() && one.Created.Year() < 1970 {
		t.Errorf("a machine was made at %v", one.Created)
	}
}

// legible says whether a text is what people can read on one line, of at most limit bytes.
func legible(text string, limit int) bool {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	return len(text) <= limit && utf8.ValidString(text) && !strings.ContainsFunc(text, hidden) && strings.TrimSpace(text) == text
}

// endless is a driver whose lists go on with pages of this size for as long as anybody asks.
type endless struct {
	driverv1alpha1.MachineServiceClient
	machines int
	state    []byte
	pages    int
}

func (e *endless) ListMachines(
	context.Context, *driverv1alpha1.ListMachinesRequest, ...grpc.CallOption,
) (*driverv1alpha1.ListMachinesResponse, error) {
	e.pages++
	page := &driverv1alpha1.ListMachinesResponse{NextPageToken: fmt.Sprint(e.pages)}
	for i := range e.machines {
		page.Machines = append(page.Machines, &driverv1alpha1.Machine{
			Ref: &driverv1alpha1.MachineRef{Uid: fmt.Sprintf("%d-%d", e.pages, i)}, LastKnownState: e.state,
		})
	}
	return page, nil
}

func TestAListThatDoesNotEndIsNone(t *testing.T) {
	for _, tc := range []struct {
		name  string
		said  endless
		pages int
	}{
		{"empty pages", endless{}, maxPages},
		{"many machines", endless{machines: 1 << 13}, maxListed>>13 + 1},
		{"large machines", endless{machines: 1, state: make([]byte, maxListSize/4)}, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, s := offline(&tc.said)
			machines, failure := p.List(t.Context(), s, machine("asking"))
			if machines != nil || failure == nil || failure.Class != instance.OutcomeUnknown || tc.said.pages != tc.pages {
				t.Errorf("%d machines, %v after %d pages; want a failure after %d", len(machines), failure, tc.said.pages, tc.pages)
			}
		})
	}
}

// hurried is a driver whose lists never end, and that notes how long it may take.
type hurried struct {
	endless
	began, latest time.Time
}

func (h *hurried) ListMachines(
	ctx context.Context, r *driverv1alpha1.ListMachinesRequest, o ...grpc.CallOption,
) (*driverv1alpha1.ListMachinesResponse, error) {
	if h.began.IsZero() {
		h.began = time.Now()
	}
	deadline, _ := ctx.Deadline()
	h.latest = later(h.latest, deadline)
	return h.endless.ListMachines(ctx, r, o...)
}

func TestAListHasADeadlineForAllItsPages(t *testing.T) {
	said := &hurried{}
	p, s := offline(said)
	s.Capabilities.Deadlines.ListPage = time.Microsecond
	if machines, failure := p.List(t.Context(), s, machine("asking")); machines != nil || failure == nil {
		t.Errorf("%d machines, %v", len(machines), failure)
	}
	if long := said.latest.Sub(said.began); long > maxListPages*s.Capabilities.Deadlines.ListPage {
		t.Errorf("a page may come %v after the first was asked for", long)
	}
}
