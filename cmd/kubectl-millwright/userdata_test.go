package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/millwright-dev/millwright/core/bootstrap"
)

const deploymentAndCluster = `
apiVersion: cluster.k8s.io/v1alpha1
kind: MachineDeployment
metadata: {name: workers}
spec:
  template:
    metadata: {labels: {app: web}}
    spec:
      clusterRef: {name: one}
      versions: {kubelet: 1.36.3}
      providerSpec: {value: {cloudProvider: fake, operatingSystem: ubuntu}}
---
apiVersion: cluster.k8s.io/v1alpha1
kind: Cluster
metadata: {name: one}
spec:
  apiEndpoints: [{host: api.example.com, port: 6443}]
  clusterNetwork: {serviceDomain: cluster.local}
  bootstrap: {clusterDNS: [10.96.0.10], kubeletConfiguration: {maxPods: 50}}
`

// ca is the certificate of an authority whose key is lost.
const ca = `-----BEGIN CERTIFICATE-----
MIIBdDCCARmgAwIBAgIUfZXtBajjbcKPtQwqkuCOjl89G4YwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEa3ViZTAeFw0yNjExMjQxNTI5NDBaFw0zNjExMjExNTI5NDBa
MA8xDTALBgNVBAMMBGt1YmUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQ+rgW9
ioa6hQWEXHk5IrHxIPKsf52rpDV6zHC4IjIaaBWNwC727ei7pSMEldNHvsViXtNe
mQ9xJlxJUYz+F1HJo1MwUTAdBgNVHQ4EFgQUOSpvufyMlqeoakH+0RXhKmXvn4Iw
HwYDVR0jBBgwFoAUOSpvufyMlqeoakH+0RXhKmXvn4IwDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNJADBGAiEAlrG3bJjT3cQcOdVt2guPH76nLOs5350mFiZF
RxKL3FwCIQCM28ojcfI+/xxQ8TroNegtAVfsADknI9TLbDcekqdzBQ==
-----END CERTIFICATE-----
`

func TestUserDataOfADeploymentNeedsNoCluster(t *testing.T) {
	given, err := readManifests("-", strings.NewReader(deploymentAndCluster))
	if err != nil {
		t.Fatal(err)
	}
	given.cluster.err = errUnreachable
	data, err := given.userData(t.Context(), bootstrap.Config{CABundle: []byte(ca)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"hostname: workers-xxxxx\n", "server: https://api.example.com:6443", "maxPods: 50", "token: " + maskedToken, "app=web"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the user data lacks %q", want)
		}
	}
	if !errors.Is(given.unread, errUnreachable) {
		t.Errorf("nothing says that the cluster was not asked: %v", given.unread)
	}
}

var errUnreachable = errors.New("there is no kubeconfig")

// What the file and the flags say is enough, or the error names what is missing and why the cluster
// does not say it.
func TestUserDataNamesWhatIsMissing(t *testing.T) {
	flags := bootstrap.Config{Server: "https://api.example.com:6443", CABundle: []byte(ca), ClusterDNS: []string{"10.96.0.10"}}
	machine := "kind: Machine\nmetadata: {name: a}\nspec:\n  versions: {kubelet: 1.36.3}\n  providerSpec: {value: {operatingSystem: flatcar}}\n"
	pinned := machine + "  clusterRef: {name: one}\n---\nkind: Cluster\nmetadata: {name: one, namespace: infra}\n" +
		"spec: {bootstrap: {artifacts: {mirror: 'http://mirror.example.com', digestsConfigMap: {name: digests}}}}\n"
	digests := bootstrap.WriteDigests(map[string]string{"dl.k8s.io/v1.36.3/bin/linux/amd64/kubelet": strings.Repeat("a", 64)})
	for name, c := range map[string]struct {
		text   string
		config bootstrap.Config
		names  string
	}{
		"all is given":        {machine, flags, ""},
		"nothing is given":    {machine, bootstrap.Config{}, "--node-api-server"},
		"no CA":               {machine, bootstrap.Config{Server: flags.Server, ClusterDNS: flags.ClusterDNS}, "unknown is the API server's CA"},
		"no DNS":              {machine, bootstrap.Config{Server: flags.Server, CABundle: flags.CABundle}, "unknown is the address of the cluster's DNS"},
		"no Cluster":          {machine + "  clusterRef: {name: one}\n", flags, "there is no Cluster one"},
		"no ConfigMap":        {pinned, flags, `digestsConfigMap of the Cluster: configmaps "digests" not found`},
		"a digest is missing": {pinned + "---\nkind: ConfigMap\nmetadata: {name: digests}\ndata: {sha256sums: '" + digests + "\n'}\n", flags, "needs a digest of github.com/containernetworking"},
	} {
		t.Run(name, func(t *testing.T) {
			given, err := readManifests("-", strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			given.cluster.err = errUnreachable
			data, err := given.userData(t.Context(), c.config)
			if c.names == "" {
				if err != nil || !strings.Contains(string(data), `"version":"3.4.0"`) {
					t.Errorf("%v, %.40q", err, data)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.names) || data != nil {
				t.Errorf("error %v, want one that names %q", err, c.names)
			}
			if given.unread != nil && !errors.Is(err, errUnreachable) {
				t.Errorf("error %v does not say that the cluster could not be asked", err)
			}
		})
	}
}

func TestUserDataNeedsAMachine(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":          "",
		"something else":   "kind: Service",
		"an unknown field": "kind: Machine\nspec: {colour: red}",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readManifests("-", strings.NewReader(text)); err == nil {
				t.Error("it is taken")
			}
		})
	}
}

// Own user data, of the machine or of its class, is shown with the machine's name and the masked
// token.
func TestUserDataOfOnesOwn(t *testing.T) {
	const machine = "kind: Machine\nmetadata: {name: a}\nspec:\n  versions: {kubelet: 1.36.3}\n"
	const named = machine + "  bootstrap: {dataSecretName: own}\n  providerSpec: {value: {operatingSystem: ubuntu}}\n"
	const ofClass = machine + "  providerSpec: {value: {operatingSystem: ubuntu}, valueFrom: {machineClass: {name: large}}}\n---\n" +
		"kind: MachineClass\nmetadata: {name: large}\nprovider: fake\nsecretRef: {name: own}\n"
	secret := func(key string) string {
		return "---\nkind: Secret\nmetadata: {name: own}\nstringData: {" + key + ": 'I am <<MACHINE_NAME>> with <<BOOTSTRAP_TOKEN>>'}\n"
	}
	for name, c := range map[string]struct {
		text, names string
	}{
		"of the machine":             {named + secret("value"), ""},
		"of the class":               {ofClass + secret("userData"), ""},
		"a Secret that is not there": {named, `secrets "own" not found`},
		"a Secret without the key":   {named + secret("data"), `neither key "value" nor key "userData"`},
		"a class without it":         {ofClass + secret("password"), "--node-api-server"},
	} {
		t.Run(name, func(t *testing.T) {
			given, err := readManifests("-", strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			given.cluster.err = errUnreachable
			data, err := given.userData(t.Context(), bootstrap.Config{})
			switch {
			case c.names == "" && (err != nil || string(data) != "I am a with "+maskedToken):
				t.Errorf("%v, %q", err, data)
			case c.names != "" && (err == nil || !strings.Contains(err.Error(), c.names)):
				t.Errorf("error %v, want one that names %q", err, c.names)
			}
		})
	}
}
