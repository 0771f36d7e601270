package deployment

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/millwright-dev/millwright/conformance/faultproxy"
)

// Metadata is the key of a server's metadata whose value is a Fault's.
const Metadata = "test-fault"

// Fault makes Nova's driver fail. See python/fault_driver.py for what there is.
type Fault struct {
	// Match is a pattern of servers' names, as of a shell; empty: all.
	Match string `json:"match,omitempty"`
	// Fault is abort, reschedule, slow, hang, crash or destroy.
	Fault string `json:"fault"`
	// Seconds is how long a slow build takes longer; 0: 20.
	Seconds int `json:"seconds,omitempty"`
	// Times is how often, on all hosts together; 0: always.
	Times int `json:"times,omitempty"`
}

// Fail replaces the faults of Nova's driver, until the test is over.
func (d *Deployment) Fail(t testing.TB, faults ...Fault) {
	t.Helper()
	d.forgive(t)
	raw, err := json.Marshal(faults)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.forgive(t) })
	if err := os.WriteFile(d.Faults, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// forgive removes the faults, and what counts their times.
func (d *Deployment) forgive(t testing.TB) {
	t.Helper()
	used, err := filepath.Glob(d.Faults + ".used-*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(used, d.Faults) {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// Break replaces the fault proxy's rules, until the test is over.
func (d *Deployment) Break(t testing.TB, rules ...faultproxy.Rule) {
	t.Helper()
	t.Cleanup(func() { d.ask(t, http.MethodPut, "/rules", []faultproxy.Rule{}, nil) })
	d.ask(t, http.MethodPut, "/rules", rules, nil)
}

// Calls are the requests that users have made since the calls were told the last time.
func (d *Deployment) Calls(t testing.TB) []faultproxy.Call {
	t.Helper()
	var calls []faultproxy.Call
	d.ask(t, http.MethodDelete, "/calls", nil, &calls)
	return calls
}

// ask asks the fault proxy; the test fails where there is none.
func (d *Deployment) ask(t testing.TB, method, path string, body, answer any) {
	t.Helper()
	if d.FaultProxy == "" {
		t.Fatal("the cloud was brought up without the fault proxy: OPENSTACK_PROXY was not set")
	}
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(method, d.FaultProxy+path, bytes.NewReader(raw)) //nolint:noctx // it is asked in cleanups, too, when the test's context has ended
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("ask the fault proxy: %v", err)
	}
	defer response.Body.Close()
	raw, err = io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, response.StatusCode, raw)
	}
	if err == nil && answer != nil {
		err = json.Unmarshal(raw, answer)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
}
