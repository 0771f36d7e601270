package bootstrap

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// token is a bootstrap token's form, and nobody's.
const token = "abcdef.0123456789abcdef"

// authority is a CA's certificate, made once.
var authority = sync.OnceValue(func() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
})

// cluster is the least that a machine's user data needs.
func cluster(change ...func(*Config)) Config {
	c := Config{Server: "https://api.example.com:6443", CABundle: authority(), ClusterDNS: []string{"10.96.0.10"}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func worker(change ...func(*clusterv1alpha1.Machine)) *clusterv1alpha1.Machine {
	m := &clusterv1alpha1.Machine{}
	m.Name, m.Spec.Versions.Kubelet = "worker-1", "v1.36.3"
	m.Labels = map[string]string{"b": "of the Machine", "a": ""}
	m.Spec.Metadata.Labels = map[string]string{"b": "2", "node-role.kubernetes.io/worker": "", "topology.kubernetes.io/zone": "z"}
	m.Spec.Taints = []clusterv1alpha1.Taint{
		{Key: "example.com/gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}, {Key: "dedicated", Effect: corev1.TaintEffectNoExecute},
	}
	value := &m.Spec.ProviderSpec.Value
	value.OperatingSystem, value.OperatingSystemSpec.DistUpgradeOnBoot = clusterv1alpha1.OperatingSystemUbuntu, true
	value.SSHPublicKeys = []string{`ssh-ed25519 AAAA "me" # it's: [me]`}
	for _, c := range change {
		c(m)
	}
	return m
}
