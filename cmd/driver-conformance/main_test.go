package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/millwright-dev/millwright/conformance"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
)

// introduction is a driver that says who it is, and can do nothing.
type introduction struct {
	handshakev1.UnimplementedHandshakeServiceServer
	driverv1alpha1.UnimplementedIdentityServiceServer
	version string
}

func (i introduction) GetPluginInfo(context.Context, *handshakev1.GetPluginInfoRequest) (*handshakev1.GetPluginInfoResponse, error) {
	return &handshakev1.GetPluginInfoResponse{Name: "sawmill", VendorVersion: i.version, ApiPackages: []string{"millwright.driver.v1alpha1"}}, nil
}

func (introduction) GetCapabilities(context.Context, *driverv1alpha1.GetCapabilitiesRequest) (*driverv1alpha1.GetCapabilitiesResponse, error) {
	return &driverv1alpha1.GetCapabilitiesResponse{ProviderIdPrefix: "sawmill:///"}, nil
}

// bench is a place for configs and drivers.
type bench struct {
	*testing.T
	dir string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("", "bench") // not t.TempDir: a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &bench{T: t, dir: dir}
}

// write writes a file and returns its path.
func (b *bench) write(name, text string) string {
	b.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// serve serves a driver of that version, and returns where.
func (b *bench) serve(name, version string) string {
	b.Helper()
	path := filepath.Join(b.dir, name)
	listener, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer()
	handshakev1.RegisterHandshakeServiceServer(server, introduction{version: version})
	driverv1alpha1.RegisterIdentityServiceServer(server, introduction{version: version})
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(server.Stop)
	return "unix://" + path
}

// call does what the arguments say.
func (b *bench) call(args ...string) (code int, out, errs string) {
	b.Helper()
	var stdout, stderr bytes.Buffer
	code = execute(b.Context(), args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestExitCodes(t *testing.T) {
	b := newBench(t)
	good, broken := b.serve("good", "v1"), b.serve("broken", "")
	config := b.write("config.yaml", "providerSpec: {size: small}\nstate: "+b.dir+"\n")
	mistyped := b.write("mistyped.yaml", "providerSpecs: {size: small}\n")
	run := func(endpoint string, more ...string) []string {
		return append([]string{"run", "--config", config, "--endpoint", endpoint, "--focus", "identity/name"}, more...)
	}
	for _, test := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"a driver of which a part was tried", run(good), 3, "sawmill v1: no breach found; "},
		{"one that does not", run(broken), 1, "failed: identity/name (MUST)"},
		{"its fault is known", run(broken, "--waive", "identity/name=it has none yet"), 3, "waived: identity/name (MUST)"},
		{"checks of the other tier", run(broken, "--tier", "fault"), 3, "no breach found; 0 of"},
		{"a driver that can do nothing", []string{"run", "--config", config, "--endpoint", good, "--profile", "basic"}, 1, "does not conform, profile basic"},
		{"a part of a profile", run(good, "--profile", "basic"), 2, "profile: is tried whole"},
		{"a profile that is none", []string{"run", "--config", config, "--endpoint", good, "--profile", "basics"}, 2, `profile: is "basics"; choose`},
		{"a waiver without a reason", run(good, "--waive", "identity/name"), 2, "--waive=identity/name: say why"},
		{"a waiver of no check", run(good, "--waive", "identity/nome=why"), 2, `waive: there is no check "identity/nome"`},
		{"a focus on no check", run(good, "--focus", "identity/nome"), 2, `focus: there is no check "identity/nome"`},
		{"a tier that is none", run(good, "--tier", "fualt"), 2, `tier: is "fualt"; choose core or fault`},
		{"an endpoint that is none", run("localhost:9443"), 2, "endpoint: "},
		{"a backend on TCP", run(good, "--backend", "localhost:9443"), 2, "backend: "},
		{"a report that cannot be written", run(good, "--json", filepath.Join(b.dir, "not", "there")), 2, "no such file"},
		{"no config", []string{"run"}, 2, `required flag(s) "config" not set`},
		{"a config that is not there", []string{"run", "--config", "not/there"}, 2, "--config: "},
		{"a config with an unknown field", []string{"run", "--config", mistyped}, 2, "providerSpecs"},
		{"an unknown flag", run(good, "--fucos", "x"), 2, "unknown flag: --fucos"},
		{"an unknown command", []string{"rnu"}, 2, "unknown command"},
		{"an argument too many", run(good, "x"), 2, "unknown command"},
		{"the checks", []string{"list"}, 0, "identity/name"},
		{"the mutants", []string{"list", "--mutants"}, 0, "identity/name"},
		{"the rules", []string{"list", "--musts"}, 0, "M42   create/again"},
		{"what the rules are about", []string{"list", "--musts"}, 0, "\n      CreateMachineRequest.user_data: MUST [M93] reach it"},
		{"a cleanup of no run", []string{"cleanup", "--config", config}, 2, `required flag(s) "run-id" not set`},
		{"a cleanup of a run that was not", []string{"cleanup", "--config", config, "--endpoint", good, "--run-id", "x"}, 2, `there is no journal of the run "x"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, out, errs := (&bench{T: t}).call(test.args...)
			if code != test.code || !strings.Contains(out+errs, test.says) {
				t.Errorf("%d, want %d and %q:\n%s%s", code, test.code, test.says, out, errs)
			}
			if (errs != "") != (test.code == 2) && !strings.Contains(errs, "machines may be left") {
				t.Errorf("on stderr stands %q", errs)
			}
		})
	}
}

func TestReportsAreWritten(t *testing.T) {
	b := newBench(t)
	config := b.write("config.yaml", "endpoint: "+b.serve("broken", "")+"\nproviderSpec: {}\nfocus: [identity/name]\nstate: "+b.dir+"\n")
	junit, whole := filepath.Join(b.dir, "junit.xml"), filepath.Join(b.dir, "report.json")
	if code, out, errs := b.call("run", "--config", config, "--junit", junit, "--json", whole); code != 1 {
		t.Errorf("%d, want 1:\n%s%s", code, out, errs)
	}
	var report conformance.Report
	if raw, err := os.ReadFile(whole); err != nil || json.Unmarshal(raw, &report) != nil || report.Driver != "sawmill" || report.Verdict() != conformance.Breaks || report.Seed == 0 {
		t.Errorf("%s, %v", raw, err)
	}
	var suite struct {
		Failures int `xml:"failures,attr"`
	}
	if raw, err := os.ReadFile(junit); err != nil || xml.Unmarshal(raw, &suite) != nil || suite.Failures != 1 {
		t.Errorf("%s, %v", raw, err)
	}
}

// A run that was interrupted says nothing against the driver, unless a MUST was broken before.
func TestInterruptedRunsBlameNobody(t *testing.T) {
	broken := conformance.Result{Level: conformance.Must, Outcome: conformance.Failed}
	for name, tc := range map[string]struct {
		report conformance.Report
		left   error
		want   error
	}{
		"interrupted":           {conformance.Report{Interrupted: true}, nil, errNotTriedWhole},
		"something may be left": {conformance.Report{Interrupted: true}, os.ErrExist, os.ErrExist},
		"broken before":         {conformance.Report{Interrupted: true, Results: []conformance.Result{broken}}, nil, errBroken},
	} {
		if got := verdict(&tc.report, tc.left, io.Discard); !errors.Is(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
