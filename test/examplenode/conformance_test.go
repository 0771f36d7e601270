// Package examplenode proves that the example driver in TypeScript, providers/example-node, keeps
// to the contract: as a process of its own, built by `make example-node`.
package examplenode

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/conformance"
)

// The driver keeps to the contract.
func TestDRV2_ExampleInTypeScript(t *testing.T) {
	s := newScene(t)
	s.start("driver")
	conformance.Run(t, s.config())
}

// config is what the folder's own conformance.yaml says, so that its README.md is true.
func (s *scene) config() conformance.Config {
	s.Helper()
	raw, err := os.ReadFile(filepath.Join(source, "conformance.yaml"))
	if err != nil {
		s.Fatal(err)
	}
	var c conformance.Config
	if err := yaml.UnmarshalStrict(raw, &c); err != nil {
		s.Fatal(err)
	}
	c.Endpoint, c.State = s.endpoint("driver"), s.TempDir()
	c.DriverLog, c.DriverFiles = s.logFile("driver"), []string{s.files()}
	// Its cloud is a folder, which has room for more than clouds of those who copy the config.
	c.Crowd = 100
	s.addAccount(c.OtherSecrets["token"].Value)
	return c
}

// addAccount has the cloud open another account to this token.
func (s *scene) addAccount(token string) {
	s.Helper()
	sum := sha256.Sum256([]byte(token))
	tokens := filepath.Join(s.cloud(), "tokens")
	for _, dir := range []string{tokens, filepath.Join(s.cloud(), "accounts", "other")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			s.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(tokens, hex.EncodeToString(sum[:])), []byte("other\n"), 0o600); err != nil {
		s.Fatal(err)
	}
}
