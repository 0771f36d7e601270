package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/conformance/faultproxy"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func httpChecks() []Check {
	return []Check{
		{
			ID: "http/lost-answer", Level: Must, Musts: []int{42, 43, 55}, Tier: Fault, Proxy: true, run: httpLostAnswer,
			Rule: "Where the answer to any request of a create or a delete is lost, the next create makes no second VM, and the next delete leaves nothing.",
		},
		{
			ID: "http/failing", Level: Must, Musts: []int{52, 55}, Tier: Fault, Proxy: true, run: httpFailing,
			Rule: "A request that fails with 429 or 5xx makes nothing look gone, and what it has left goes with the machine.",
		},
		{
			ID: "http/truncated", Level: Must, Musts: []int{42, 43, 52, 55, 58}, Tier: Fault, Proxy: true, run: httpTruncated,
			Rule: "An answer that breaks off in the middle makes nothing look gone, no list shorter, and no second VM; what it is about goes with the machine.",
		},
		{
			ID: "http/no-retry", Level: Must, Musts: []int{32}, Tier: Fault, Proxy: true, run: httpNoRetry,
			Rule: "A driver does not retry a request that changes the cloud, nor has its cloud's SDK do it.",
		},
	}
}

// changing are the methods of requests that change a cloud. A login is one of them in some.
const changing = "POST|PUT|PATCH|DELETE"

// proxied is the cloud behind the fault proxy.
type proxied struct{ t *trial }

// breaks has requests to the cloud fail by these rules alone; without one none fails.
func (p proxied) breaks(ctx context.Context, rules ...faultproxy.Rule) {
	if rules == nil {
		rules = []faultproxy.Rule{}
	}
	raw, _ := json.Marshal(rules) // what was made here can be written
	p.ask(ctx, http.MethodPut, "/rules", raw, nil)
}

// requests are those to the cloud since it was asked last.
func (p proxied) requests(ctx context.Context) []faultproxy.Call {
	var calls []faultproxy.Call
	p.ask(ctx, http.MethodDelete, "/calls", nil, &calls)
	return calls
}

// ask asks the fault proxy. Where it does not answer, the check ends.
func (p proxied) ask(ctx context.Context, method, path string, body []byte, into any) {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(p.t.config.FaultProxy, "/")+path, bytes.NewReader(body))
	if err != nil {
		p.t.fatalf("faultProxy: %v", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.fatalf("faultProxy: %v", err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil || response.StatusCode != http.StatusOK {
		p.t.fatalf("faultProxy: %s %s: %s %s (%v)", method, path, response.Status, raw, err)
	}
}

// changes counts the requests that change the cloud while do is under way.
func (p proxied) changes(ctx context.Context, do func()) int {
	p.requests(ctx)
	do()
	return len(slices.DeleteFunc(p.requests(ctx), func(c faultproxy.Call) bool { return !isChange(c) }))
}

func isChange(c faultproxy.Call) bool { return slices.Contains(strings.Split(changing, "|"), c.Method) }

// eachChange has each request of a create, and each of a delete, broken in turn: rule is told how
// many pass before. after is called when a call of the driver has failed, or all are done.
func (p proxied) eachChange(ctx context.Context, rule func(after int) faultproxy.Rule, after func(m *machine, what string)) {
	first := p.t.machine()
	creates := p.changes(ctx, func() { first.running(ctx) })
	deletes := p.changes(ctx, func() { first.gone(ctx) })
	if creates == 0 {
		p.t.notRun("no request to the cloud came by the fault proxy: have the driver call the cloud through it")
	}
	for i := range creates {
		m := p.t.machine()
		m.intend()
		p.breaks(ctx, rule(i))
		_ = m.createUntilError(unjudged(ctx))
		p.breaks(ctx)
		after(m, "create")
	}
	for i := range deletes {
		m := p.t.machine()
		m.running(ctx)
		p.breaks(ctx, rule(i))
		_ = m.removeUntilError(unjudged(ctx))
		p.breaks(ctx)
		after(m, "delete")
	}
}

// createUntilError asks until the machine is not being made any more, or until the first error: a
// driver need not make all of the cloud's requests in one call.
func (m *machine) createUntilError(ctx context.Context) error {
	for {
		now, err := m.send(ctx, m.createRequest())
		if err != nil || now.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_CREATING {
			return err
		}
		select {
		case <-time.After(min(max(now.GetOperation().GetPollAfter().AsDuration(), shortestPoll), longestPoll)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// recovers has a machine of which a create or a delete was broken be there once, and then gone.
func (p proxied) recovers(ctx context.Context) func(m *machine, what string) {
	return func(m *machine, what string) {
		if what == "create" {
			m.forget()
			m.running(ctx)
			p.t.one(ctx, m)
		}
		m.gone(ctx)
		_, err := m.get(ctx)
		p.t.expect("a status after the "+what+" was broken and the machine deleted", err, notFound)
	}
}

// notGone notes a breach where a machine that is there looks gone.
func (p proxied) notGone(ctx context.Context, m *machine, why string) {
	now, err := m.get(unjudged(ctx))
	if reasonOf(err) == contract.ReasonName(notFound) || err == nil && now.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_FAILED {
		p.t.errorf("while the cloud answers with %s, a machine that is there is %s (%v)", why, now.GetState(), err)
	}
	if !p.t.has(featureList) {
		return
	}
	if found, err := p.t.list(unjudged(ctx), p.t.clusterUID); err == nil && found[m.ref.GetUid()] == nil {
		p.t.errorf("while the cloud answers with %s, the list lacks a machine that is there", why)
	}
}

func httpLostAnswer(ctx context.Context, t *trial) {
	p := proxied{t}
	p.eachChange(ctx, func(after int) faultproxy.Rule {
		return faultproxy.Rule{Method: changing, After: after, Times: 1, Drop: "after"}
	}, p.recovers(ctx))
}

func httpFailing(ctx context.Context, t *trial) {
	p := proxied{t}
	for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		p.eachChange(ctx, func(after int) faultproxy.Rule {
			return faultproxy.Rule{Method: changing, After: after, Times: 1, Status: status, Body: "{}"}
		}, p.recovers(ctx))
		m := t.machine()
		m.running(ctx)
		p.breaks(ctx, faultproxy.Rule{Status: status, Body: "{}"})
		p.notGone(ctx, m, http.StatusText(status))
		p.breaks(ctx)
	}
}

func httpTruncated(ctx context.Context, t *trial) {
	p := proxied{t}
	p.eachChange(ctx, func(after int) faultproxy.Rule {
		return faultproxy.Rule{Method: changing, After: after, Times: 1, Truncate: 1}
	}, p.recovers(ctx))
	m := t.machine()
	m.running(ctx)
	for _, bytes := range []int{1, 20, 200} {
		p.breaks(ctx, faultproxy.Rule{Method: http.MethodGet, Truncate: bytes})
		p.notGone(ctx, m, "an answer that breaks off")
		p.breaks(ctx)
	}
}

func httpNoRetry(ctx context.Context, t *trial) {
	p := proxied{t}
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError} {
		m := t.machine()
		m.intend()
		p.breaks(ctx, faultproxy.Rule{Method: changing, Status: status, Body: "{}"})
		sent := map[string]int{}
		p.requests(ctx)
		_ = m.createOnly(unjudged(ctx))
		for _, c := range p.requests(ctx) {
			if isChange(c) {
				sent[c.Method+" "+c.URL]++
			}
		}
		p.breaks(ctx)
		for request, times := range sent {
			if times > 1 {
				t.errorf("%s answered %d, and one create sent it %d times: switch off the retries of the cloud's SDK", request, status, times)
			}
		}
	}
}
