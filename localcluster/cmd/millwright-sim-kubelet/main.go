// Command millwright-sim-kubelet plays the kubelets of all VMs of a test cloud: see package
// simkubelet.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/millwright-dev/millwright/localcluster/simkubelet"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

type flags struct {
	kubeconfig, backend, clusterID, kubeletVersion string
	cpu, memory, pods                              string
	lease                                          time.Duration
	workers                                        int
	fast                                           bool
}

func parseFlags() flags {
	var f flags
	flag.StringVar(&f.kubeconfig, "kubeconfig", "", "how to reach the cluster whose Nodes the VMs become (required)")
	flag.StringVar(&f.backend, "backend", "", "the test cloud's hooks, as unix:///path/of/socket (required)")
	flag.StringVar(&f.clusterID, "cluster-id", "", "take VMs of this cluster only; empty: all whose user data starts a kubelet")
	flag.StringVar(&f.kubeletVersion, "kubelet-version", "", "the version that Nodes report whose user data does not say; empty: that of the local control plane")
	flag.StringVar(&f.cpu, "cpu", "4", "CPUs of each Node")
	flag.StringVar(&f.memory, "memory", "16Gi", "memory of each Node")
	flag.StringVar(&f.pods, "pods", "110", "pods that each Node takes")
	flag.DurationVar(&f.lease, "lease-duration", 40*time.Second, "how long a Node's Lease is good for; renewed after a quarter of it")
	flag.IntVar(&f.workers, "workers", 32, "requests under way at once")
	flag.BoolVar(&f.fast, "fast", false, "register Nodes as this process's own user, without a certificate: for benchmarks only")
	flag.Parse()
	return f
}

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, log, parseFlags()); err != nil {
		log.Error("Cannot go on", "error", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, log *slog.Logger, f flags) error {
	if f.kubeconfig == "" || f.backend == "" {
		return errors.New("--kubeconfig and --backend are required")
	}
	capacity, err := f.capacity()
	if err != nil {
		return err
	}
	client, err := newClient(f.kubeconfig)
	if err != nil {
		return err
	}
	connection, err := grpc.NewClient(f.backend, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to the cloud: %w", err)
	}
	defer func() { _ = connection.Close() }()
	fleet := simkubelet.New(client, backendv1alpha1.NewBackendServiceClient(connection), simkubelet.Options{
		Log: log, ClusterUID: f.clusterID, LeaseDuration: f.lease, KubeletVersion: f.kubeletVersion, Capacity: capacity, Workers: f.workers, Fast: f.fast,
	})
	fleet.Run(ctx)
	return nil
}

func (f flags) capacity() (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{
		corev1.ResourceCPU: f.cpu, corev1.ResourceMemory: f.memory, corev1.ResourcePods: f.pods,
	} {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", name, err)
		}
		list[name] = quantity
	}
	return list, nil
}

// newClient returns a client without a rate limit: fairness is the API server's to keep.
func newClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.UserAgent = "millwright-sim-kubelet"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return client, nil
}
