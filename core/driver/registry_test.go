package driver

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

func TestParseTarget(t *testing.T) {
	for _, test := range []struct {
		flag string
		want Target
		says string
	}{
		{"fake=unix:///run/x.sock", Target{"fake", "unix:///run/x.sock"}, ""},
		{"fake", Target{}, "NAME=ADDRESS"},
		{"Fake=unix:///x", Target{}, "small letters"},
		{"=unix:///x", Target{}, "small letters"},
		{"fake=unix://x.sock", Target{}, "unix:///absolute/path"},
		{"fake=unix:/x.sock", Target{}, "unix:///absolute/path"},
		{"fake=/x.sock", Target{}, "unix:///absolute/path"},
		{"fake=unix:///" + strings.Repeat("x", 200), Target{}, "shorter"},
		{"fake=dns:///host:9443", Target{}, "plaintext TCP is refused"},
		{"fake=dns:///host:9443?tls=/run/tls", Target{"fake", "dns:///host:9443?tls=/run/tls"}, ""},
		{"fake=exec:///opt/driver?arg=--x", Target{"fake", "exec:///opt/driver?arg=--x"}, ""},
		{"fake=127.0.0.1:9443", Target{}, "plaintext TCP is refused"},
	} {
		t.Run(test.flag, func(t *testing.T) {
			got, err := ParseTarget(test.flag)
			if got != test.want || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, %v; want %v and an error that says %q", got, err, test.want, test.says)
			}
			if err == nil && got.String() != test.flag {
				t.Errorf("String() = %q", got)
			}
		})
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	one := Target{"fake", "unix:///x"}
	for name, test := range map[string]struct {
		cluster string
		targets []Target
	}{
		"no cluster":      {"", []Target{one}},
		"twice":           {"c", []Target{one, one}},
		"no such address": {"c", []Target{{"fake", "tcp://x"}}},
	} {
		if _, err := New(Config{ClusterUID: test.cluster}, test.targets); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestAnUnknownProviderIsNamed(t *testing.T) {
	drivers, err := New(Config{ClusterUID: "c"}, []Target{{"b", "unix:///b"}, {"a", "unix:///a"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = drivers.For("openstack")
	var unknown *UnknownError
	if !errors.As(err, &unknown) {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff(&UnknownError{Provider: "openstack", Have: []string{"a", "b"}}, unknown); diff != "" {
		t.Error(diff)
	}
	if got := unknown.Error(); !strings.Contains(got, `"openstack"`) || !strings.Contains(got, "a, b") {
		t.Errorf("message %q", got)
	}
	if got := (&UnknownError{Provider: "x"}).Error(); !strings.Contains(got, "none is configured") {
		t.Errorf("message %q", got)
	}
}

// logSink hands every line of the log to read, of all levels.
func logSink(read func(line string)) logr.Logger {
	return funcr.New(func(prefix, args string) { read(prefix + " " + args) }, funcr.Options{Verbosity: 10})
}
