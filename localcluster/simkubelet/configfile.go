package simkubelet

import (
	"errors"
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/millwright-dev/millwright/localcluster/simkubelet/firstboot"
)

// The files that the kubelet's unit names. They are kubeadm's.
const (
	configFile    = "/var/lib/kubelet/config.yaml"
	bootstrapFile = "/etc/kubernetes/bootstrap-kubelet.conf"
)

// readConfigFile reads the kubelet's configuration file, where there is one, as strictly as the
// kubelet does.
func (c *kubeletConfig) readConfigFile(root *firstboot.Root) error {
	file, found := root.Files[configFile]
	if !found {
		return nil
	}
	config, err := decodeConfig([]byte(file.Content))
	if err != nil {
		return fmt.Errorf("read %s: %w", configFile, err)
	}
	if ca := config.Authentication.X509.ClientCAFile; ca != "" {
		content, err := root.Read(path.Dir(configFile), ca)
		if err == nil {
			_, err = certutil.ParseCertsPEM([]byte(content))
		}
		if err != nil {
			return fmt.Errorf("read %s: authentication.x509.clientCAFile: %w", configFile, err)
		}
	}
	for i, taint := range config.RegisterWithTaints {
		if err := validateTaint(taint); err != nil {
			return fmt.Errorf("read %s: registerWithTaints[%d]: %w", configFile, i, err)
		}
	}
	c.taints, c.providerID, c.requestsServing = config.RegisterWithTaints, config.ProviderID, config.ServerTLSBootstrap
	return nil
}

func decodeConfig(data []byte) (*kubeletv1beta1.KubeletConfiguration, error) {
	scheme := runtime.NewScheme()
	if err := kubeletv1beta1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the kubelet's configuration: %w", err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	object, _, err := decoder.Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	config, ok := object.(*kubeletv1beta1.KubeletConfiguration)
	if !ok {
		return nil, fmt.Errorf("kind %T: use KubeletConfiguration", object)
	}
	return config, nil
}

// bootstrapConfig returns how the kubelet reaches the API server before it has a certificate. It
// needs the configuration file as well, which the kubelet's unit names.
func bootstrapConfig(root *firstboot.Root) (*rest.Config, error) {
	if _, err := root.Read("", configFile); err != nil {
		return nil, fmt.Errorf("load kubelet config file: %w", err)
	}
	content, err := root.Read("", bootstrapFile)
	if err != nil {
		return nil, fmt.Errorf("load bootstrap kubeconfig: %w", err)
	}
	config, err := clientcmd.Load([]byte(content))
	if err != nil {
		return nil, fmt.Errorf("load bootstrap kubeconfig %s: %w", bootstrapFile, err)
	}
	if err := resolveFiles(config, root); err != nil {
		return nil, fmt.Errorf("load bootstrap kubeconfig %s: %w", bootstrapFile, err)
	}
	client, err := clientcmd.NewNonInteractiveClientConfig(*config, config.CurrentContext, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("load bootstrap kubeconfig %s: %w", bootstrapFile, err)
	}
	client.QPS = -1
	client.UserAgent = "millwright-sim-kubelet"
	return client, nil
}

// resolveFiles puts the machine's files in the place of their names. A name must not get through to
// this process, whose disk is another machine's.
func resolveFiles(config *clientcmdapi.Config, root *firstboot.Root) error {
	for name, cluster := range config.Clusters {
		if cluster.CertificateAuthority == "" {
			continue
		}
		ca, err := root.Read(path.Dir(bootstrapFile), cluster.CertificateAuthority)
		if err != nil {
			return fmt.Errorf("cluster %q: certificate-authority: %w", name, err)
		}
		cluster.CertificateAuthority, cluster.CertificateAuthorityData = "", []byte(ca)
	}
	for _, user := range config.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "" {
			return errors.New("a user with other credentials than a token is not simulated")
		}
	}
	return nil
}
