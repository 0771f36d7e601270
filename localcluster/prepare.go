package localcluster

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// prepare makes everything that the components need to start: an empty place, ports, keys,
// kubeconfigs.
func (l *layout) prepare() error {
	for _, name := range []string{"etcd", "pki", "config", "kubeconfig"} {
		if err := os.RemoveAll(l.path(name)); err != nil {
			return fmt.Errorf("remove what an earlier cluster left: %w", err)
		}
	}
	logs, err := filepath.Glob(l.path("logs", "*.log"))
	if err != nil {
		return fmt.Errorf("list logs: %w", err)
	}
	for _, log := range logs {
		if err := os.Remove(log); err != nil {
			return fmt.Errorf("remove what an earlier cluster left: %w", err)
		}
	}
	if l.ports, err = claimPorts(); err != nil {
		return err
	}
	if err := l.writeConfig(); err != nil {
		return err
	}
	if err := l.writePKI(); err != nil {
		return err
	}
	return l.writeKubeconfigs()
}

func (l *layout) writeConfig() error {
	for _, dir := range []string{"etcd", "pki", "config"} {
		if err := os.Mkdir(l.path(dir), 0o700); err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
	}
	for _, name := range []string{"audit.yaml", "kwok.yaml"} {
		data, err := configFiles.ReadFile("config/" + name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if l.options.AuditBodies {
			data = bytes.ReplaceAll(data, []byte("level: Metadata"), []byte("level: Request"))
		}
		if err := os.WriteFile(l.path("config", name), data, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

func (l *layout) writePKI() error {
	var err error
	if l.apiPKI, err = newAuthority(l.path("pki", "api"), "kubernetes"); err != nil {
		return err
	}
	if l.kubeletClient, err = l.apiPKI.client("kubelet-client", KubeletClientUser); err != nil {
		return err
	}
	if l.etcdPKI, err = newAuthority(l.path("pki", "etcd"), "etcd"); err != nil {
		return err
	}
	if l.serving, err = l.apiPKI.serving("serving", l.options.Endpoint.servingNames()...); err != nil {
		return err
	}
	if l.etcdServing, err = l.etcdPKI.serving("serving"); err != nil {
		return err
	}
	if l.etcdClient, err = l.etcdPKI.client("client", APIServer); err != nil {
		return err
	}
	l.tokens, err = writeSigningKey(l.path("pki"))
	return err
}
