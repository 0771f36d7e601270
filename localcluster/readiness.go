package localcluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How often a component that is coming up is asked, and how long it may take to answer.
const (
	readyInterval = 25 * time.Millisecond
	readyTimeout  = 2 * time.Second
)

// WaitReady returns when the cluster is of use: every component says it is ready, and the namespace
// default and its ServiceAccount exist, so that pods are admitted. It fails when ctx ends, saying
// what was missing last, or when a component ends meanwhile.
func (c *Cluster) WaitReady(ctx context.Context) error {
	ready := map[string]func(context.Context) error{
		Etcd: c.etcdReady, APIServer: c.apiServerReady, ControllerManager: c.controllerManagerReady,
		Scheduler: c.schedulerReady, Kwok: c.kwokReady,
	}
	for _, name := range c.layout.options.components() {
		if err := c.await(ctx, name, ready[name]); err != nil {
			return err
		}
	}
	return nil
}

// await asks until the component is ready, has ended, or ctx is over.
func (c *Cluster) await(ctx context.Context, name string, ready func(context.Context) error) error {
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	process := c.supervisor.Process(name)
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w, last: %w", name, ctx.Err(), err)
		case <-process.Done():
			return c.explainEnd(name)
		case <-ticker.C:
		}
	}
}

// explainEnd finds the report of a component's end. It takes those of others out on its way: they
// are logged.
func (c *Cluster) explainEnd(name string) error {
	for {
		select {
		case e := <-c.supervisor.Exits():
			if e.Process == name {
				return e
			}
		default:
			return fmt.Errorf("wait for %s: it does not run", name)
		}
	}
}

func (c *Cluster) etcdReady(ctx context.Context) error {
	config, err := c.layout.etcdConfig()
	if err != nil {
		return err
	}
	return getOK(ctx, config, c.layout.ports.url(etcdClientPort)+"/readyz")
}

// etcdConfig is that of etcd's clients.
func (l *layout) etcdConfig() (*tls.Config, error) {
	pool, err := readPool(l.etcdPKI.pair.cert)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(l.etcdClient.cert, l.etcdClient.key)
	if err != nil {
		return nil, fmt.Errorf("read certificate of etcd's client: %w", err)
	}
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, nil
}

func (c *Cluster) apiServerReady(ctx context.Context) error {
	return c.getOK(ctx, c.layout.ports.url(apiServerPort)+"/readyz")
}

func (c *Cluster) schedulerReady(ctx context.Context) error {
	return c.getOK(ctx, c.layout.ports.url(schedulerPort)+"/readyz")
}

func (c *Cluster) kwokReady(ctx context.Context) error {
	return getOK(ctx, nil, "http://"+c.layout.ports.address(kwokPort)+"/readyz")
}

// controllerManagerReady takes the account, which a controller makes, for the proof that
// controllers work.
func (c *Cluster) controllerManagerReady(ctx context.Context) error {
	if err := c.getOK(ctx, c.layout.ports.url(controllerManagerPort)+"/healthz"); err != nil {
		return err
	}
	_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}

// getOK asks a component that shows the cluster's serving certificate.
func (c *Cluster) getOK(ctx context.Context, url string) error {
	pool, err := readPool(c.layout.apiPKI.pair.cert)
	if err != nil {
		return err
	}
	return getOK(ctx, &tls.Config{RootCAs: pool}, url)
}

func readPool(path string) (*x509.CertPool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, errors.New("read certificate authority: no certificate in it")
	}
	return pool, nil
}

// getOK returns nil when url answers 200, over a connection of its own.
func getOK(ctx context.Context, config *tls.Config, url string) error {
	client := &http.Client{
		Timeout:   readyTimeout,
		Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	const enough = 512
	body, err := io.ReadAll(io.LimitReader(response.Body, enough))
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	return fmt.Errorf("ask %s: %s: %s", url, response.Status, strings.TrimSpace(string(body)))
}
