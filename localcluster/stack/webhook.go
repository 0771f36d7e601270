package stack

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/localcluster"
)

// webhook is where the manager serves its webhook, and how the API server knows it.
type webhook struct {
	address, dir string
	authority    []byte
}

// prepareWebhook finds an address and makes the certificate.
func (s *Stack) prepareWebhook() (webhook, error) {
	address, err := s.SpareAddress()
	if err != nil {
		return webhook{}, err
	}
	w := webhook{address: address, dir: filepath.Join(s.options.Dir, "webhook")}
	// That of an earlier run goes: its authority is not this one's.
	if err := os.RemoveAll(w.dir); err != nil {
		return webhook{}, fmt.Errorf("remove the webhook's old certificate: %w", err)
	}
	w.authority, err = localcluster.ServingCertificate(w.dir)
	return w, err
}

// installWebhook applies the shipped configuration with the local address in the place of a
// Service.
func (s *Stack) installWebhook(ctx context.Context, w webhook) error {
	raw, err := os.ReadFile(filepath.Join(s.options.DeployDir, "webhook", "validating_webhook.yaml"))
	if err != nil {
		return fmt.Errorf("read the webhook's configuration: %w", err)
	}
	var configuration struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Metadata   map[string]any   `json:"metadata"`
		Webhooks   []map[string]any `json:"webhooks"`
	}
	if err := yaml.UnmarshalStrict(raw, &configuration); err != nil {
		return fmt.Errorf("read the webhook's configuration: %w", err)
	}
	for _, hook := range configuration.Webhooks {
		client, _ := hook["clientConfig"].(map[string]any)
		service, _ := client["service"].(map[string]any)
		path, _ := service["path"].(string)
		hook["clientConfig"] = map[string]any{
			"url": "https://" + w.address + path, "caBundle": base64.StdEncoding.EncodeToString(w.authority),
		}
	}
	local, err := yaml.Marshal(configuration)
	if err != nil {
		return fmt.Errorf("write the webhook's configuration: %w", err)
	}
	return s.kubectl(ctx, local, "apply", "-f", "-")
}
