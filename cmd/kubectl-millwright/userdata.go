package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/cmd/nodeflags"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/core/bootstrap/discovery"
)

// maskedToken stands where a machine has its bootstrap token.
const maskedToken = "xxxxxx.xxxxxxxxxxxxxxxx"

func userDataCommand(where *cluster) *cobra.Command {
	var (
		nodes nodeflags.Flags
		file  string
	)
	command := &cobra.Command{
		Use:   "userdata -f FILE",
		Short: "Print the user data that a machine would get, with its token masked",
		Long: "Print the user data that a machine would get, with its token masked. FILE holds a Machine, MachineSet or MachineDeployment, and its\n" +
			"Cluster, its ConfigMap of digests, its MachineClass and the Secret with user data of its own if those are not applied yet. Give the --node- flags that the manager has. What neither says is read from\n" +
			"the cluster; none is needed where they say the API server, its CA and the cluster's DNS.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := nodes.Config()
			if err != nil {
				return err
			}
			given, err := readManifests(file, command.InOrStdin())
			if err != nil {
				return err
			}
			c, namespace, err := where.connect(corev1.AddToScheme, discoveryv1.AddToScheme, clusterv1alpha1.AddToScheme)
			given.cluster = reader{client: c, err: err}
			given.machine.Namespace = cmp.Or(given.machine.Namespace, namespace)
			data, err := given.userData(command.Context(), config)
			if err != nil {
				return err
			}
			if given.unread != nil {
				stderrLog().Warn("the cluster could not be asked: where nobody says, the user data has defaults", "error", given.unread)
			}
			_, err = command.OutOrStdout().Write(append(bytes.TrimRight(data, "\n"), '\n'))
			return err
		},
	}
	command.Flags().StringVarP(&file, "filename", "f", "-", "The file; - is the standard input.")
	nodes.Add(command.Flags())
	return command
}

// manifests are a machine and what stands beside it. What is not among them is read from cluster.
type manifests struct {
	machine    *clusterv1alpha1.Machine
	clusters   []*clusterv1alpha1.Cluster
	configMaps []*corev1.ConfigMap
	classes    []*clusterv1alpha1.MachineClass
	secrets    []*corev1.Secret
	cluster    reader
	// unread is why the cluster could not be asked.
	unread error
}

// reader is a client, or why there is none.
type reader struct {
	client client.Reader
	err    error
}

// userData renders what the machine would get.
func (m *manifests) userData(ctx context.Context, flags bootstrap.Config) ([]byte, error) {
	own, err := m.ownUserData(ctx)
	var data []byte
	switch {
	case err != nil:
	case own != nil:
		data, err = own.Render(m.machine, flags.MaxBytes, maskedToken)
	default:
		data, err = m.rendered(ctx, flags)
	}
	if err != nil && m.unread != nil {
		return nil, fmt.Errorf("%w; the cluster could not be asked: %w", err, m.unread)
	}
	return data, err
}

// rendered is the user data of a machine that brings none.
func (m *manifests) rendered(ctx context.Context, flags bootstrap.Config) ([]byte, error) {
	config, err := discovery.New(discovery.Options{
		Flags: flags, Management: m, ConfigMaps: m, Workload: m, Clock: clock.RealClock{},
	}).Config(ctx, m.machine)
	if err != nil {
		return nil, err
	}
	return bootstrap.Render(m.machine, config, maskedToken)
}

// Get returns an object of the file, and all else from the cluster. One that cannot be
// asked has nothing, and is asked once.
func (m *manifests) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	resource, found := m.given(key, into)
	if found {
		return nil
	}
	if m.unread == nil {
		err := m.cluster.err
		if err == nil {
			err = m.cluster.client.Get(ctx, key, into, o...)
		}
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || ctx.Err() != nil {
			return err
		}
		m.unread = err
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, key.Name)
}

// given copies an object of the file, if it is there, and returns what objects of its kind are
// called.
func (m *manifests) given(key client.ObjectKey, into client.Object) (resource string, is bool) {
	switch wanted := into.(type) {
	case *clusterv1alpha1.Cluster:
		return "clusters", copyNamed(m.clusters, key, wanted)
	case *corev1.ConfigMap:
		return "configmaps", copyNamed(m.configMaps, key, wanted)
	case *clusterv1alpha1.MachineClass:
		return "machineclasses", copyNamed(m.classes, key, wanted)
	case *corev1.Secret:
		return "secrets", copyNamed(m.secrets, key, wanted)
	}
	return "objects", false
}

// copyNamed copies the object that has the key, if there is one. One without a namespace is in
// each.
func copyNamed[T interface {
	client.Object
	DeepCopyInto(T)
}](given []T, key client.ObjectKey, into T) bool {
	for _, o := range given {
		if o.GetName() == key.Name && (o.GetNamespace() == key.Namespace || o.GetNamespace() == "" || key.Namespace == "") {
			o.DeepCopyInto(into)
			return true
		}
	}
	return false
}

// List is of no use here.
func (m *manifests) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.ErrUnsupported
}

// readManifests reads a file of one machine, or of what machines are made from.
func readManifests(file string, stdin io.Reader) (*manifests, error) {
	var data []byte
	var err error
	if file == "-" {
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	var m manifests
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = m.add(document)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if m.machine == nil {
		return nil, fmt.Errorf("%s: holds no Machine, MachineSet or MachineDeployment", file)
	}
	return &m, nil
}

// add takes over one document. Of several machines the first counts.
func (m *manifests) add(document []byte) error {
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	var err error
	machine := &clusterv1alpha1.Machine{}
	switch kind.Kind {
	case "Machine":
		err = yaml.UnmarshalStrict(document, machine)
	case "MachineSet":
		set := &clusterv1alpha1.MachineSet{}
		err = yaml.UnmarshalStrict(document, set)
		machine = fromTemplate(set.Namespace, set.Name, set.Spec.Template)
	case "MachineDeployment":
		deployment := &clusterv1alpha1.MachineDeployment{}
		err = yaml.UnmarshalStrict(document, deployment)
		machine = fromTemplate(deployment.Namespace, deployment.Name, deployment.Spec.Template)
	case "Cluster":
		c := &clusterv1alpha1.Cluster{}
		m.clusters = append(m.clusters, c)
		return yaml.UnmarshalStrict(document, c)
	case "ConfigMap":
		c := &corev1.ConfigMap{}
		m.configMaps = append(m.configMaps, c)
		return yaml.UnmarshalStrict(document, c)
	case "MachineClass":
		c := &clusterv1alpha1.MachineClass{}
		m.classes = append(m.classes, c)
		return yaml.UnmarshalStrict(document, c)
	case "Secret":
		s := &corev1.Secret{}
		m.secrets = append(m.secrets, s)
		return yaml.UnmarshalStrict(document, s)
	default:
		return nil
	}
	if m.machine == nil {
		m.machine = machine
	}
	return err
}

// fromTemplate is a Machine as it would be made; its name ends as nobody knows yet.
func fromTemplate(namespace, name string, t clusterv1alpha1.MachineTemplateSpec) *clusterv1alpha1.Machine {
	m := &clusterv1alpha1.Machine{}
	m.Namespace, m.Name = namespace, name+"-xxxxx"
	m.Labels, m.Annotations = t.Labels, t.Annotations
	m.Spec = t.Spec
	return m
}
