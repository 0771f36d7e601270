// Command monitoring writes the dashboards of deploy/dashboards, as a ConfigMap that Grafana's
// sidecar loads. Its tests hold them to Grafana's types, and have Prometheus' own code evaluate
// the alerts of deploy/alerts. Its module is one of its own, since these bring hundreds of others.
package main

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: monitoring FILE")
		os.Exit(2)
	}
	text, err := configMap()
	if err == nil {
		err = os.WriteFile(os.Args[1], text, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}

// head says where the file comes from, and which label Grafana's sidecar looks for.
const head = `# Made by tools/monitoring. Dashboards for Grafana's sidecar, which loads ConfigMaps with this label, for overlays: ` + "`components: [../dashboards]`" + `.
apiVersion: v1
kind: ConfigMap
metadata:
  name: millwright-dashboards
  namespace: millwright-system
  labels:
    grafana_dashboard: "1"
`

// configMap returns the manifest.
func configMap() ([]byte, error) {
	data := map[string]string{}
	for _, d := range dashboards {
		text, err := d.json()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.title, err)
		}
		data["millwright-"+strings.ToLower(d.title)+".json"] = string(text)
	}
	text, err := yaml.Marshal(map[string]any{"data": data})
	return append([]byte(head), text...), err
}
