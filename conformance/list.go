package conformance

import (
	"context"
	"slices"
	"time"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const featureList = driverv1alpha1.Feature_FEATURE_LIST

func listChecks() []Check {
	return []Check{
		{
			ID: "list/complete", Level: Must, Musts: []int{58}, Feature: featureList, run: listComplete,
			Rule: "ListMachines holds every uid of this cluster that owns any resource, and says of each what GetMachineStatus says.",
		},
		{
			ID: "list/nameless", Level: Must, Musts: []int{72}, Feature: featureList, run: listNameless,
			Rule: "A machine that is listed by its uid in the place of namespace and name is deleted by that ref.",
		},
		{
			ID: "list/scope", Level: Must, Musts: []int{59}, Feature: featureList, run: listScope,
			Rule: "ListMachines holds only machines of meta.cluster_uid.",
		},
		{
			ID: "list/pages", Level: Must, Musts: []int{98, 101}, Feature: featureList, run: listPages,
			Rule: "page_size is not exceeded; over all pages a machine that existed throughout appears exactly once.",
		},
		{
			ID: "list/many", Level: Must, Musts: []int{58}, Feature: featureList, run: listMany,
			Rule: "A list is complete also where the cloud tells of its VMs page by page.",
		},
		{
			ID: "list/bad-token", Level: Must, Musts: []int{100}, Feature: featureList, run: listBadToken,
			Rule: "An unknown page_token is PAGE_TOKEN_EXPIRED.",
		},
		{
			ID: "list/leftovers", Level: Must, Musts: []int{60}, Feature: featureList, Hooks: true, run: listLeftovers,
			Rule: "What is left of a half-made create is in the list, with empty provider_id and state FAILED.",
		},
		{
			ID: "list/partial-failure", Level: Must, Musts: []int{58}, Feature: featureList, Hooks: true, run: listPartialFailure,
			Rule: "A list is complete or an error.",
		},
		{
			ID: "list/create-time", Level: Should, Feature: featureList, run: listCreateTime,
			Rule: "create_time is when the VM was made: orphans are judged by their age.",
		},
	}
}

// list returns all machines of a cluster that a driver lists, by uid.
func (t *trial) list(ctx context.Context, cluster string) (map[string]*driverv1alpha1.Machine, error) {
	return t.listWhile(ctx, cluster, 0, func() {})
}

// listWhile is list, and calls between after each page but the last.
func (t *trial) listWhile(ctx context.Context, cluster string, pageSize int32, between func()) (map[string]*driverv1alpha1.Machine, error) {
	_, _, timeout := t.deadlines()
	found := map[string]*driverv1alpha1.Machine{}
	token := ""
	for range 1000 {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		answer, err := t.machines.ListMachines(ctx, &driverv1alpha1.ListMachinesRequest{
			Meta:     &driverv1alpha1.RequestMeta{RequestId: random(), ClusterUid: cluster},
			Provider: &driverv1alpha1.ProviderContext{ProviderSpec: t.config.ProviderSpec, Secrets: t.secrets},
			PageSize: pageSize, PageToken: token,
		})
		cancel()
		if err != nil {
			return nil, err
		}
		for _, m := range answer.GetMachines() {
			if found[m.GetRef().GetUid()] != nil {
				t.errorf("the machine %s is on two pages", m.GetRef().GetUid())
			}
			found[m.GetRef().GetUid()] = m
		}
		if token = answer.GetNextPageToken(); token == "" {
			return found, nil
		}
		between()
	}
	t.fatalf("the list does not end after 1,000 pages")
	return nil, nil
}

// mustList is list; an error ends the check.
func (t *trial) mustList(ctx context.Context, cluster string) map[string]*driverv1alpha1.Machine {
	found, err := t.list(ctx, cluster)
	if err != nil {
		t.fatalf("list: %v", err)
	}
	return found
}

func listComplete(ctx context.Context, t *trial) {
	m := t.machine()
	want := m.running(ctx)
	got := t.mustList(ctx, t.clusterUID)[m.ref.GetUid()]
	if got == nil {
		t.fatalf("the machine is not in the list")
	}
	if got.GetProviderId() != want.GetProviderId() || got.GetState() != want.GetState() {
		t.errorf("the list says %v, the status %v", got, want)
	}
	if ref := got.GetRef(); !isNameless(ref) && (ref.GetNamespace() != m.ref.GetNamespace() || ref.GetName() != m.ref.GetName()) {
		t.errorf("the list names it %s/%s, which is neither its namespace and name nor its uid twice", ref.GetNamespace(), ref.GetName())
	}
	m.gone(ctx)
	if _, there := t.mustList(ctx, t.clusterUID)[m.ref.GetUid()]; there {
		t.errorf("the machine is in the list after it was deleted")
	}
}

// isNameless says whether a driver that stores a digest of namespace and name has listed the ref.
func isNameless(r *driverv1alpha1.MachineRef) bool {
	return r.GetNamespace() == r.GetUid() && r.GetName() == r.GetUid()
}

// listNameless deletes by what is listed, as core does with what no Machine names any more.
func listNameless(ctx context.Context, t *trial) {
	m := t.machine()
	m.running(ctx)
	listed := t.mustList(ctx, t.clusterUID)[m.ref.GetUid()]
	if !isNameless(listed.GetRef()) {
		t.notApplicable("the driver lists namespace and name")
	}
	nameless := *m
	nameless.ref, nameless.providerID, nameless.state = listed.GetRef(), listed.GetProviderId(), listed.GetLastKnownState()
	nameless.gone(ctx)
}

func listScope(ctx context.Context, t *trial) {
	m := t.machine()
	m.running(ctx)
	// The shape of each answer was judged with the call.
	if found := t.mustList(ctx, t.clusterUID+"-other"); len(found) > 0 {
		t.errorf("the list of a cluster that has nothing holds %d machines", len(found))
	}
}

// listPages lists page by page while other machines come and go.
func listPages(ctx context.Context, t *trial) {
	const machines = 3
	var want []string
	for range machines {
		m := t.machine()
		m.running(ctx)
		want = append(want, m.ref.GetUid())
	}
	other := t.machine()
	other.running(ctx)
	pages := 0
	found, err := t.listWhile(ctx, t.clusterUID, 1, func() {
		switch pages++; pages {
		case 1:
			other.gone(ctx)
		case 2:
			if _, err := t.machine().create(ctx); err != nil {
				t.fatalf("create: %v", err)
			}
		}
	})
	if err != nil {
		t.fatalf("list: %v", err)
	}
	for _, uid := range want {
		if found[uid] == nil {
			t.errorf("the machine %s is on none of the pages", uid)
		}
	}
}

// listMany lists more machines than the cloud tells of at once.
func listMany(ctx context.Context, t *trial) {
	if t.config.CloudPage == 0 {
		t.notRun("it makes a machine more than the cloud tells of at once: say how many that are as cloudPage")
	}
	var all []*machine
	for range t.config.CloudPage + 1 {
		all = append(all, t.machine())
	}
	together(all, func(m *machine) { m.running(ctx) })
	found := t.mustList(ctx, t.clusterUID)
	missing := 0
	for _, m := range all {
		// By another list of the cloud's, a machine may be there without its VM.
		if one := found[m.ref.GetUid()]; one == nil || one.GetProviderId() != m.providerID {
			missing++
		}
	}
	if missing > 0 {
		t.errorf("of %d machines the list lacks %d, or their VMs: read every page of the cloud's", len(all), missing)
	}
	together(all, func(m *machine) { m.gone(ctx) })
}

func listBadToken(ctx context.Context, t *trial) {
	_, err := t.machines.ListMachines(ctx, &driverv1alpha1.ListMachinesRequest{
		Meta:      &driverv1alpha1.RequestMeta{RequestId: random(), ClusterUid: t.clusterUID},
		Provider:  &driverv1alpha1.ProviderContext{ProviderSpec: t.config.ProviderSpec, Secrets: t.secrets},
		PageToken: "millwright-conformance-unknown",
	})
	t.expect("a list with an unknown token", err, driverv1alpha1.ErrorReason_ERROR_REASON_PAGE_TOKEN_EXPIRED)
}

// halfMade has a create fail at the cloud's last call, if it makes several, and returns the
// machine.
func (t *trial) halfMade(ctx context.Context) *machine {
	info := t.cloud.info(ctx)
	calls := info.GetCreateOperations()
	if len(calls) < 2 {
		t.notApplicable("this cloud makes a machine in one call")
	}
	m := t.machine()
	t.cloud.inject(ctx, m, &backendv1alpha1.Fault{
		Match:  &backendv1alpha1.FaultMatch{Operation: calls[len(calls)-1]},
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, Error: &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_CAPACITY},
	})
	if _, err := m.create(ctx); err == nil {
		t.fatalf("a create succeeded of which %s failed", calls[len(calls)-1])
	}
	t.cloud.removeFaults(ctx)
	if t.cloud.countResources(ctx, m) == 0 {
		t.notApplicable("the driver has cleaned up after the create that failed")
	}
	return m
}

func listLeftovers(ctx context.Context, t *trial) {
	m := t.halfMade(ctx)
	got := t.mustList(ctx, t.clusterUID)[m.ref.GetUid()]
	if got == nil {
		t.fatalf("what is left of a half-made create is not in the list")
	}
	if got.GetProviderId() != "" || got.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_FAILED {
		t.errorf("what is left of a half-made create is %s, %q", got.GetState(), got.GetProviderId())
	}
}

func listPartialFailure(ctx context.Context, t *trial) {
	info := t.cloud.info(ctx)
	m := t.machine()
	m.running(ctx)
	for _, operation := range reads(info) {
		_, err := t.backend.InjectFault(ctx, &backendv1alpha1.InjectFaultRequest{Fault: &backendv1alpha1.Fault{
			Match: &backendv1alpha1.FaultMatch{Operation: operation}, Times: 1,
			Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, Error: &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL},
		}})
		if err != nil {
			t.fatalf("the cloud's hooks: inject a fault: %v", err)
		}
		if found, err := t.list(ctx, t.clusterUID); err == nil && found[m.ref.GetUid()] == nil {
			t.errorf("while %s fails the list lacks a machine", operation)
		}
		t.cloud.removeFaults(ctx)
	}
}

// reads are the cloud's operations that change nothing.
func reads(info *backendv1alpha1.GetBackendInfoResponse) []string {
	changes := slices.Concat(info.GetCreateOperations(), info.GetDeleteOperations())
	return slices.DeleteFunc(slices.Clone(info.GetOperations()), func(operation string) bool { return slices.Contains(changes, operation) })
}

func listCreateTime(ctx context.Context, t *trial) {
	began := time.Now()
	m := t.machine()
	m.running(ctx)
	made := t.mustList(ctx, t.clusterUID)[m.ref.GetUid()].GetCreateTime().AsTime()
	// Clocks differ.
	if made.Before(began.Add(-time.Hour)) || made.After(time.Now().Add(time.Hour)) {
		t.errorf("the machine was made at %s, and the list says %s", began, made)
	}
}
