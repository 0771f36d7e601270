package stack

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/tools/clientcmd"
)

// metricsReader is the account that reads the manager's metrics, with the shipped role.
const metricsReader = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: ` + metricsReaderName + `, namespace: ` + managerNamespace + `}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ` + metricsReaderName + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ` + metricsReaderName + `}
subjects: [{kind: ServiceAccount, name: ` + metricsReaderName + `, namespace: ` + managerNamespace + `}]
`

const metricsReaderName = "millwright-metrics-reader"

// metrics is where the manager serves its metrics, and with what token they are read.
type metrics struct {
	address, token string
}

func (s *Stack) prepareMetrics(ctx context.Context) (metrics, error) {
	address, err := s.SpareAddress()
	if err != nil {
		return metrics{}, err
	}
	if err := s.kubectl(ctx, []byte(metricsReader), "apply", "-f", "-"); err != nil {
		return metrics{}, err
	}
	path := filepath.Join(s.options.Dir, "metrics.kubeconfig")
	if err := s.KubeconfigForServiceAccount(ctx, managerNamespace, metricsReaderName, path); err != nil {
		return metrics{}, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return metrics{}, fmt.Errorf("read the kubeconfig of who reads metrics: %w", err)
	}
	return metrics{address: address, token: config.BearerToken}, nil
}

// Metrics reads what the manager's metrics are now, by name.
func (s *Stack) Metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.metrics.address+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.metrics.token)
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // the manager signs its certificate itself; it is on this machine
		},
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the manager's metrics: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the manager's metrics: %s", answer.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read the manager's metrics: %w", err)
	}
	return families, nil
}
