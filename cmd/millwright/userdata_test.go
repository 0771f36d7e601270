package main

import (
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
	data, err := given.userData(t.Context(), bootstrap.Config{CABundle: []byte(ca), ClientCABundle: []byte(ca)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"hostname: workers-xxxxx\n", "server: https://api.example.com:6443", "maxPods: 50", "token: " + maskedToken, "app=web"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the user data lacks %q", want)
		}
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
