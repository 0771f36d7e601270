package workload

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// apiServer answers who asks, and counts the answers.
func apiServer(t *testing.T, token string) (server *httptest.Server, asked func() int) {
	t.Helper()
	answers := 0
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answers++
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"}}`)
	}))
	t.Cleanup(server.Close)
	return server, func() int { return answers }
}

// kubeconfig is one for a server.
func kubeconfig(server *httptest.Server, token string) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: ca}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	return config
}

// replace puts a kubeconfig in the place of another, as a Secret's volume does.
func replace(t *testing.T, path string, config *clientcmdapi.Config) {
	t.Helper()
	next := path + ".next"
	if err := clientcmd.WriteToFile(*config, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

func TestEachRequestIsMadeByTheKubeconfigOfNow(t *testing.T) {
	first, askedFirst := apiServer(t, "token-1")
	second, askedSecond := apiServer(t, "token-2")
	path := filepath.Join(t.TempDir(), "kubeconfig")
	replace(t, path, kubeconfig(first, "token-1"))
	var logged []string
	config, err := Config(path, funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, config)
	get := func() error {
		_, err := client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
		return err
	}
	for range 2 {
		if err := get(); err != nil {
			t.Fatal(err)
		}
	}
	// A token may be in a file of its own, beside the kubeconfig.
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "token"), []byte("token-1"), 0o600); err != nil {
		t.Fatal(err)
	}
	beside := kubeconfig(first, "")
	beside.AuthInfos["u"].TokenFile = "token"
	replace(t, path, beside)
	if err := get(); err != nil {
		t.Error("with the token in a file:", err)
	}
	// Another server, which has another CA and wants another token.
	replace(t, path, kubeconfig(second, "token-2"))
	if err := get(); err != nil {
		t.Error("after the file was replaced:", err)
	}
	if askedFirst() != 3 || askedSecond() != 1 {
		t.Errorf("the servers answered %d and %d times, want 3 and 1", askedFirst(), askedSecond())
	}
	// Nothing that cannot be used takes its place, and each is told of once.
	plain := kubeconfig(second, "token-2")
	plain.Clusters["c"].Server = strings.Replace(second.URL, "https", "http", 1)
	moved := kubeconfig(second, "token-2")
	moved.Clusters["c"].Server += "/behind"
	for name, spoil := range map[string]func(){
		"a file that is gone":     func() { _ = os.Remove(path) },
		"a file without contexts": func() { replace(t, path, clientcmdapi.NewConfig()) },
		"plain http":              func() { replace(t, path, plain) },
		"another path":            func() { replace(t, path, moved) },
		"half a file":             func() { _ = os.WriteFile(path, []byte("apiVersion: v1\nkind: Conf"), 0o600) },
	} {
		replace(t, path, kubeconfig(second, "token-2"))
		_ = get()
		before := len(logged)
		spoil()
		for range 2 {
			if err := get(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(logged) != before+1 {
			t.Errorf("%s: %d lines are logged, want 1: %q", name, len(logged)-before, logged[before:])
		}
	}
	for _, line := range logged {
		if strings.Contains(line, "token-2") || strings.Contains(line, "one\"") {
			t.Errorf("a token is logged: %s", line)
		}
	}
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAKubeconfigIsRefused(t *testing.T) {
	server, _ := apiServer(t, "")
	for name, tc := range map[string]struct {
		change func(*clientcmdapi.Config)
		want   string
	}{
		"no context":     {func(c *clientcmdapi.Config) { c.CurrentContext = "" }, "no configuration"},
		"plain http":     {func(c *clientcmdapi.Config) { c.Clusters["c"].Server = "http://a" }, "must be https://HOST"},
		"no host":        {func(c *clientcmdapi.Config) { c.Clusters["c"].Server = "" }, "no server"},
		"no certificate": {func(c *clientcmdapi.Config) { c.AuthInfos["u"].ClientCertificate = "none.pem" }, "none.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			config := kubeconfig(server, "token-1")
			tc.change(config)
			replace(t, path, config)
			if _, err := Config(path, funcr.New(func(string, string) {}, funcr.Options{})); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
	if _, err := Config(filepath.Join(t.TempDir(), "none"), funcr.New(func(string, string) {}, funcr.Options{})); !os.IsNotExist(err) {
		t.Errorf("without a file: %v", err)
	}
}
