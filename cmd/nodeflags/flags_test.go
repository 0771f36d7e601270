package nodeflags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/millwright-dev/millwright/core/bootstrap"
)

func parse(args ...string) (bootstrap.Config, error) {
	var f Flags
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Add(flags)
	if err := flags.Parse(args); err != nil {
		return bootstrap.Config{}, err
	}
	return f.Config()
}

func TestFlagsBecomeAConfiguration(t *testing.T) {
	bundle := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(bundle, []byte("PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := parse("--node-api-server=https://api.example.com", "--node-ca-bundle="+bundle, "--node-cluster-dns=10.0.0.10,10.0.0.11",
		"--node-registry-mirrors=docker.io=https://a.example.com,https://b.example.com", "--node-external-cloud-provider")
	if err != nil {
		t.Fatal(err)
	}
	want := bootstrap.Config{
		Server: "https://api.example.com", CABundle: []byte("PEM"), ClusterDNS: []string{"10.0.0.10", "10.0.0.11"}, ExternalCloudProvider: true,
		RegistryMirrors: map[string][]string{"docker.io": {"https://a.example.com", "https://b.example.com"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBadFlagsAreNamed(t *testing.T) {
	for name, arg := range map[string]string{
		"a file that is not there": "--node-ca-bundle=/nowhere/ca.crt",
		"a mirror without a host":  "--node-registry-mirrors=https://a.example.com",
	} {
		t.Run(name, func(t *testing.T) {
			flag, _, _ := strings.Cut(arg, "=")
			if _, err := parse(arg); err == nil || !strings.Contains(err.Error(), flag) {
				t.Errorf("parse(%s) = %v, want an error that names %s", arg, err, flag)
			}
		})
	}
}
