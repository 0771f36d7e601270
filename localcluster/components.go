package localcluster

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/millwright-dev/millwright/localcluster/supervisor"
)

// The cluster's networks: nothing ever listens there, but Services and pods have addresses.
const (
	serviceCIDR = "10.0.0.0/24"
	serviceIP   = "10.0.0.1"
	podCIDR     = "10.128.0.0/9"
)

// layout is where the parts of one cluster are, and how they find each other.
type layout struct {
	options Options
	ports   portBlock
	// apiPKI signs whom the API server trusts, etcdPKI whom etcd trusts: an API client is no client
	// of etcd.
	apiPKI  *authority
	etcdPKI *authority
	serving keyPair
	// kubeletClient is who the API server is to kubelets.
	kubeletClient keyPair
	etcdServing   keyPair
	etcdClient    keyPair
	tokens        keyPair
}

func (l *layout) path(elem ...string) string {
	return filepath.Join(append([]string{l.options.Dir}, elem...)...)
}

func (l *layout) command(name string, args ...string) supervisor.Command {
	return supervisor.Command{Name: name, Path: filepath.Join(l.options.BinDir, name), Args: args}
}

func (l *layout) etcd() supervisor.Command {
	client, peer := l.ports.url(etcdClientPort), l.ports.url(etcdPeerPort)
	args := []string{
		"--name=local",
		"--data-dir=" + l.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=local=" + peer,
		"--client-cert-auth",
		"--trusted-ca-file=" + l.etcdPKI.pair.cert,
		"--cert-file=" + l.etcdServing.cert,
		"--key-file=" + l.etcdServing.key,
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file=" + l.etcdPKI.pair.cert,
		"--peer-cert-file=" + l.etcdServing.cert,
		"--peer-key-file=" + l.etcdServing.key,
		"--quota-backend-bytes=8589934592", // Ten thousand machines under churn outgrow the default of 2 GiB.
		"--log-level=warn",
	}
	if !l.options.Fsync {
		args = append(args, "--unsafe-no-fsync")
	}
	return l.command(Etcd, args...)
}

func (l *layout) apiServer() supervisor.Command {
	args := []string{
		"--etcd-servers=" + l.ports.url(etcdClientPort),
		"--etcd-cafile=" + l.etcdPKI.pair.cert,
		"--etcd-certfile=" + l.etcdClient.cert,
		"--etcd-keyfile=" + l.etcdClient.key,
		"--bind-address=" + l.options.Endpoint.BindAddress,
		fmt.Sprintf("--secure-port=%d", l.ports.port(apiServerPort)),
		// A machine without a default route has no other address to advertise, and nobody reads the
		// endpoint.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--tls-cert-file=" + l.serving.cert,
		"--tls-private-key-file=" + l.serving.key,
		"--client-ca-file=" + l.apiPKI.pair.cert,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth",
		// For kubectl logs, exec and port-forward, where a real kubelet answers.
		"--kubelet-client-certificate=" + l.kubeletClient.cert,
		"--kubelet-client-key=" + l.kubeletClient.key,
		"--kubelet-certificate-authority=" + l.apiPKI.pair.cert,
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + l.tokens.cert,
		"--service-account-signing-key-file=" + l.tokens.key,
		"--allow-privileged",
	}
	if l.options.AuditLog {
		args = append(args, "--audit-policy-file="+l.path("config", "audit.yaml"), "--audit-log-path="+l.auditLogPath(),
			"--audit-log-maxsize=65536") // MiB. Without it the log begins anew at 100 MiB, and counts would come out short.
	}
	return l.command(APIServer, args...)
}

func (l *layout) auditLogPath() string { return l.path("logs", "audit.log") }

func (l *layout) controllerManager() supervisor.Command {
	return l.command(ControllerManager,
		"--kubeconfig="+l.kubeconfigPath(ControllerManager),
		"--controllers="+strings.Join(l.options.Controllers, ","),
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", l.ports.port(controllerManagerPort)),
		"--tls-cert-file="+l.serving.cert,
		"--tls-private-key-file="+l.serving.key,
		// The controllers' rights are bound to an account each, not to the manager's user.
		"--use-service-account-credentials",
		"--service-account-private-key-file="+l.tokens.key,
		"--root-ca-file="+l.apiPKI.pair.cert,
		"--cluster-signing-cert-file="+l.apiPKI.pair.cert,
		"--cluster-signing-key-file="+l.apiPKI.pair.key,
		"--node-monitor-grace-period="+l.options.NodeGracePeriod.String(),
		"--kube-api-qps=500", // A limit of zero or less means the default here, not none.
		"--kube-api-burst=1000",
	)
}

func (l *layout) scheduler() supervisor.Command {
	return l.command(Scheduler,
		"--kubeconfig="+l.kubeconfigPath(Scheduler),
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", l.ports.port(schedulerPort)),
		"--tls-cert-file="+l.serving.cert,
		"--tls-private-key-file="+l.serving.key,
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
}

func (l *layout) kwok() supervisor.Command {
	return l.command(Kwok,
		"--kubeconfig="+l.kubeconfigPath(Kwok),
		"--config="+l.path("config", "kwok.yaml"),
		"--manage-nodes-with-label-selector="+KubeletLabel+"="+KubeletRunning,
		"--node-lease-duration-seconds=0", // Leases are the simulated kubelets' business.
		"--cidr="+podCIDR,
		"--server-address="+l.ports.address(kwokPort),
	)
}
