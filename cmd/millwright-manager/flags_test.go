package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestFlags(t *testing.T) {
	s, err := parse([]string{
		"--driver=fake=unix:///run/fake.sock", "--driver", "other=unix:///run/other.sock",
		"--kubelet-skew=enforce", "--drain-timeout=5m", "--deadline-mutation=10s", "--leader-election-identity=me", "--max-unhealthy=5", "-v=4",
		"--orphan-collection=report", "--orphan-age=1h", "--read-only",
		"--node-startup-taint=example.com/not-ready:NoSchedule", "--node-startup-taint", "slow=disk:NoExecute",
	})
	if err != nil {
		t.Fatal(err)
	}
	o := s.options
	if len(o.Drivers) != 2 || o.Drivers[1].Name != "other" {
		t.Errorf("drivers are %v", o.Drivers)
	}
	if o.DrainTimeout != 5*time.Minute || o.Deadlines.Mutation != 10*time.Second || s.verbosity != 4 {
		t.Errorf("options are %+v, verbosity %d", o, s.verbosity)
	}
	taints := []corev1.Taint{{Key: "example.com/not-ready", Effect: "NoSchedule"}, {Key: "slow", Value: "disk", Effect: "NoExecute"}}
	if !slices.Equal(o.Nodes.StartupTaints, taints) || !slices.Equal(o.CriticalNamespaces, []string{"kube-system"}) {
		t.Errorf("start-up taints are %v, critical namespaces %v", o.Nodes.StartupTaints, o.CriticalNamespaces)
	}
	if o.NodeVolumeDetachTimeout != 10*time.Minute {
		t.Errorf("volumes may be attached for %s", o.NodeVolumeDetachTimeout)
	}
	if o.MaxUnhealthy != "5" {
		t.Errorf("--max-unhealthy=5 is %q", o.MaxUnhealthy)
	}
	if !o.ReadOnly {
		t.Error("--read-only has no effect")
	}
	if !o.EnforceSkew {
		t.Error("--kubelet-skew=enforce enforces nothing")
	}
	if o.Orphans.Off || !o.Orphans.ReportOnly || o.Orphans.Age != time.Hour || o.Orphans.Interval != 10*time.Minute {
		t.Errorf("the collection of orphans is %+v", o.Orphans)
	}
	if !o.LeaderElection.Enabled || o.LeaderElection.Identity != "me" || o.LeaderElection.Namespace != "millwright-system" {
		t.Errorf("leader election is %+v", o.LeaderElection)
	}
}

func TestNoVerbosityLogsSecrets(t *testing.T) {
	if s, err := parse([]string{"-v=10"}); err != nil || s.verbosity != 7 {
		t.Errorf("-v=10 is %d, %v", s.verbosity, err)
	}
}

func TestBadFlagsSayWhatToDo(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"plaintext TCP":         {[]string{"--driver=fake=tcp://127.0.0.1:1"}, "--driver=fake=tcp://127.0.0.1:1"},
		"a driver without name": {[]string{"--driver=unix:///run/fake.sock"}, "--driver=unix:///run/fake.sock"},
		"an unknown policy":     {[]string{"--kubelet-skew=ignore"}, "--kubelet-skew"},
		"another choice":        {[]string{"--orphan-collection=maybe"}, "off, report, delete"},
		"an argument":           {[]string{"serve"}, `"serve"`},
		"a taint of no effect":  {[]string{"--node-startup-taint=a"}, "the effect"},
		"a taint of no key":     {[]string{"--node-startup-taint==b:NoSchedule"}, "KEY[=VALUE]:EFFECT"},
		"a taint twice":         {[]string{"--node-startup-taint=a=b:NoSchedule", "--node-startup-taint=a:NoSchedule"}, "given twice"},
		"an unknown flag":       {[]string{"--drivers=x"}, "--drivers"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("parse(%q) = %v, want an error that holds %q", tc.args, err, tc.want)
			}
		})
	}
}
