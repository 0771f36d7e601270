package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/cmd/artifacts"
	"github.com/millwright-dev/millwright/core/bootstrap"
)

// answerTimeout is how long a site may take to begin its answer.
const answerTimeout = 30 * time.Second

// artifactFlags say what is asked for.
type artifactFlags struct {
	kubelets, systems, architectures []string
	name, namespace, mirror, folder  string
}

func artifactsCommand() *cobra.Command {
	var flags artifactFlags
	command := &cobra.Command{
		Use:   "artifacts --kubelet VERSION",
		Short: "Print the ConfigMap of digests of what machines download, and fill a mirror with it",
		Long: "Print a ConfigMap with the SHA-256 sums of what machines with these kubelets download, as their sites publish them, for\n" +
			"spec.bootstrap.artifacts.digestsConfigMap of a Cluster. All but the kubelet has the version that this release takes. With --download the\n" +
			"files are put below a folder as well, each checked, as HOST/PATH: serve it, and name its URL as spec.bootstrap.artifacts.mirror. What is there\n" +
			"already stays, so it can be interrupted, and run again.",
		Example: "  kubectl millwright artifacts --kubelet 1.36.3 -n infra | kubectl apply -f -\n" +
			"  kubectl millwright artifacts --kubelet 1.35.6,1.36.3 --architecture amd64 --download /srv/mirror > digests.yaml",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			all, err := flags.artifacts()
			if err != nil {
				return err
			}
			transport := http.DefaultTransport.(*http.Transport).Clone()
			transport.ResponseHeaderTimeout = answerTimeout
			source := artifacts.Source{Client: &http.Client{Transport: transport}, Mirror: flags.mirror, Log: stderrLog()}
			digests, err := source.Digests(command.Context(), all, flags.folder)
			if err != nil {
				return err
			}
			printed, err := flags.configMap(digests)
			if err != nil {
				return err
			}
			_, err = command.OutOrStdout().Write(printed)
			return err
		},
	}
	set := command.Flags()
	set.StringSliceVar(&flags.kubelets, "kubelet", nil, "Versions of the kubelet, as in spec.versions.kubelet of machines. Required.")
	set.StringSliceVar(&flags.systems, "operating-system", operatingSystems(), "Operating systems of the machines.")
	set.StringSliceVar(&flags.architectures, "architecture", bootstrap.Architectures, "Architectures of the machines.")
	set.StringVar(&flags.mirror, "from", "", "URL of a mirror, by https, to ask instead of the artifacts' own sites.")
	set.StringVar(&flags.folder, "download", "", "Folder to fill as a mirror. Empty: nothing is downloaded but sums.")
	set.StringVar(&flags.name, "name", "millwright-artifacts", "Name of the ConfigMap.")
	set.StringVarP(&flags.namespace, "namespace", "n", "", "Namespace of the ConfigMap: that of the Cluster. Empty: where it is applied.")
	return command
}

// operatingSystems are those that can be set up.
func operatingSystems() []string {
	return []string{string(clusterv1alpha1.OperatingSystemUbuntu), string(clusterv1alpha1.OperatingSystemFlatcar)}
}

// artifacts are what machines as the flags describe them download.
func (f *artifactFlags) artifacts() ([]bootstrap.Artifact, error) {
	if len(f.kubelets) == 0 {
		return nil, fmt.Errorf("--kubelet: say which versions machines have, such as --kubelet 1.36.3")
	}
	for _, architecture := range f.architectures {
		if !slices.Contains(bootstrap.Architectures, architecture) {
			return nil, fmt.Errorf("--architecture=%s: there are %s", architecture, strings.Join(bootstrap.Architectures, ", "))
		}
	}
	var all []bootstrap.Artifact
	for _, system := range f.systems {
		if !slices.Contains(operatingSystems(), system) {
			return nil, fmt.Errorf("--operating-system=%s: there are %s", system, strings.Join(operatingSystems(), ", "))
		}
		for _, kubelet := range f.kubelets {
			if _, err := utilversion.ParseSemantic(kubelet); err != nil {
				return nil, fmt.Errorf("--kubelet=%s: %w", kubelet, err)
			}
			all = append(all, bootstrap.Artifacts(clusterv1alpha1.OperatingSystem(system), kubelet)...)
		}
	}
	return slices.DeleteFunc(all, func(a bootstrap.Artifact) bool { return !slices.Contains(f.architectures, a.Architecture) }), nil
}

// configMap is what a Cluster's digestsConfigMap names.
func (f *artifactFlags) configMap(digests map[string]string) ([]byte, error) {
	return yaml.Marshal(corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: f.name, Namespace: f.namespace},
		Data:       map[string]string{bootstrap.DigestsKey: bootstrap.WriteDigests(digests)},
	})
}
