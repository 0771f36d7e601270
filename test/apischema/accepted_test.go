package apischema

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// TestVariantsAreAccepted guards the rules against refusing too much.
func TestVariantsAreAccepted(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	for _, variant := range []struct {
		name  string
		edits []edit
	}{
		{"replicas 0", []edit{{"spec.replicas", "0"}}},
		{"no replicas", []edit{{"spec.replicas", ""}}},
		{"percentages", []edit{{rollingUpdate, "{maxSurge: 150%, maxUnavailable: 25%}"}}},
		{"only maxUnavailable", []edit{{rollingUpdate, "{maxSurge: 0, maxUnavailable: 1}"}}},
		{"all unavailable", []edit{{rollingUpdate, "{maxSurge: 0%, maxUnavailable: 100%}"}}},
		{"empty rollingUpdate", []edit{{rollingUpdate, "{}"}}},
		{"template with more labels than the selector", []edit{{labels, "{group: nodes, tier: gpu}"}}},
		{"In", []edit{{expressions, "[{key: group, operator: In, values: [nodes, others]}]"}}},
		{"NotIn", []edit{{expressions, "[{key: group, operator: NotIn, values: [others]}]"}}},
		{"NotIn without the label", []edit{{expressions, "[{key: tier, operator: NotIn, values: [gpu]}]"}}},
		{"Exists", []edit{{expressions, "[{key: group, operator: Exists}]"}}},
		{"DoesNotExist", []edit{{expressions, "[{key: tier, operator: DoesNotExist, values: []}]"}}},
		{"only expressions", []edit{{"spec.selector", "{matchExpressions: [{key: group, operator: Exists}]}"}}},
		{"kubelet with v", []edit{{templateSpec + ".versions.kubelet", "v1.36.3"}}},
		{"kubelet before its release", []edit{{templateSpec + ".versions.kubelet", "1.37.0-rc.1+build.5"}}},
		{"cloudProviderSpec empty", []edit{{providerValue + ".cloudProviderSpec", "{}"}}},
		{"cloudProviderSpec deep", []edit{{providerValue + ".cloudProviderSpec", "{a: {b: [1, 2.5, null, {c: d}]}, big: 9007199254740993}"}}},
		{"a class alone", []edit{{providerSpec, "{value: {operatingSystem: ubuntu}, valueFrom: {machineClass: {name: large}}}"}}},
		{"a class and more", []edit{{providerSpec + ".valueFrom", "{machineClass: {name: large}}"}}},
		{"a Cluster", []edit{{templateSpec + ".clusterRef", "{name: blue}"}}},
		{"network with nothing in it", []edit{{network, "{cidr: '', gateway: '', dns: {servers: []}, ipFamily: ''}"}}},
		{"DNS servers alone", []edit{{network, "{dns: {servers: [192.168.1.2, 'fd00::2']}, ipFamily: IPv6+IPv4}"}}},
		{"an address of its own", []edit{{network, oneAddress}, {"spec.replicas", "1"}, {rollingUpdate, "{maxSurge: 0, maxUnavailable: 1}"}}},
		{"an address of its own, left out replicas", []edit{{network, oneAddress}, {"spec.replicas", ""}, {rollingUpdate, "{maxSurge: 0%, maxUnavailable: 100%}"}}},
		{"references", []edit{{providerValue + ".cloudProviderSpec", "{a: {value: b}, c: {secretKeyRef: {name: d, key: e}}}"}}},
		{"taints", []edit{{templateSpec + ".taints", "[{key: example.com/a, value: b, effect: NoSchedule}, {key: example.com/a, effect: NoExecute}]"}}},
		{"label without value", []edit{{labels, `{group: nodes, "node-role.kubernetes.io/worker": ""}`}}},
		{"drain timeout", []edit{{templateSpec + ".nodeDrainTimeout", "1h30m"}}},
		{"drain timeout of a year", []edit{{templateSpec + ".nodeDrainTimeout", "8760h0m0s"}}},
		{"volume detach timeout", []edit{{templateSpec + ".nodeVolumeDetachTimeout", "10m"}}},
		{"no volume detach timeout", []edit{{templateSpec + ".nodeVolumeDetachTimeout", "0s"}}},
		{"startup timeout", []edit{{templateSpec + ".nodeStartupTimeout", "20m"}}},
		{"no startup timeout", []edit{{templateSpec + ".nodeStartupTimeout", "0s"}}},
		{"metadata read back from a cluster", []edit{{"spec.template.metadata.creationTimestamp", "2019-02-18T18:10:57Z"}}},
	} {
		t.Run(variant.name, func(t *testing.T) {
			u.in(t).do(edited(t, deploymentManifest, variant.edits...), "apply", "--dry-run=server", "-f", "-")
			set := append([]edit{{"spec.strategy", ""}}, variant.edits...)
			for _, e := range variant.edits {
				if e.path == rollingUpdate {
					return
				}
			}
			u.in(t).do(edited(t, setManifest, set...), "apply", "--dry-run=server", "-f", "-")
		})
	}
}

// TestDefaults reads back what the shortest manifests become. Replicas must not
// be among it: whoever drops the field later would find his machines deleted.
func TestDefaults(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	key := types.NamespacedName{Namespace: u.namespace, Name: "nodes"}
	u.do(edited(t, deploymentManifest, edit{"spec.replicas", ""}), "apply", "-f", "-")
	u.do(edited(t, setManifest, edit{"spec.replicas", ""}), "apply", "-f", "-")

	selector := clusterv1alpha1.LabelSelector{MatchLabels: map[string]string{"group": "nodes"}}
	template := clusterv1alpha1.MachineTemplateSpec{
		ObjectMeta: clusterv1alpha1.ObjectMeta{Labels: map[string]string{"group": "nodes"}},
		Spec:       machineSpec(),
	}
	var md clusterv1alpha1.MachineDeployment
	if err := u.server.client.Get(t.Context(), key, &md); err != nil {
		t.Fatal(err)
	}
	one, none := intstr.FromInt32(1), intstr.FromInt32(0)
	wantMD := clusterv1alpha1.MachineDeploymentSpec{
		Selector: selector,
		Template: template,
		Strategy: clusterv1alpha1.MachineDeploymentStrategy{
			Type: clusterv1alpha1.RollingUpdateStrategy,
			RollingUpdate: &clusterv1alpha1.MachineRollingUpdate{
				MaxSurge: &one, MaxUnavailable: &none, DeletePolicy: clusterv1alpha1.DeletePolicyRandom,
			},
		},
		ProgressDeadlineSeconds: new(int32(600)),
		RevisionHistoryLimit:    new(int32(1)),
	}
	if diff := cmp.Diff(wantMD, md.Spec); diff != "" {
		t.Errorf("MachineDeployment (-want +got):\n%s", diff)
	}

	var ms clusterv1alpha1.MachineSet
	if err := u.server.client.Get(t.Context(), key, &ms); err != nil {
		t.Fatal(err)
	}
	wantMS := clusterv1alpha1.MachineSetSpec{
		Selector: selector, Template: template, DeletePolicy: clusterv1alpha1.DeletePolicyRandom,
	}
	if diff := cmp.Diff(wantMS, ms.Spec); diff != "" {
		t.Errorf("MachineSet (-want +got):\n%s", diff)
	}
}

// TestStrategyIsCompleted proves that a strategy written in part gets the
// defaults of the rest.
func TestStrategyIsCompleted(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.do(edited(t, deploymentManifest, edit{rollingUpdate, "{maxSurge: 10%}"}), "apply", "-f", "-")
	var md clusterv1alpha1.MachineDeployment
	key := types.NamespacedName{Namespace: u.namespace, Name: "nodes"}
	if err := u.server.client.Get(t.Context(), key, &md); err != nil {
		t.Fatal(err)
	}
	tenth, none := intstr.FromString("10%"), intstr.FromInt32(0)
	want := clusterv1alpha1.MachineDeploymentStrategy{
		Type: clusterv1alpha1.RollingUpdateStrategy,
		RollingUpdate: &clusterv1alpha1.MachineRollingUpdate{
			MaxSurge: &tenth, MaxUnavailable: &none, DeletePolicy: clusterv1alpha1.DeletePolicyRandom,
		},
	}
	if diff := cmp.Diff(want, md.Spec.Strategy); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// machineSpec is the template of deploymentManifest as a Go value.
func machineSpec() clusterv1alpha1.MachineSpec {
	return clusterv1alpha1.MachineSpec{
		ProviderSpec: clusterv1alpha1.ProviderSpec{Value: clusterv1alpha1.ProviderSpecValue{
			CloudProvider:     "fake",
			CloudProviderSpec: runtime.RawExtension{Raw: []byte(`{"size":"small"}`)},
			OperatingSystem:   clusterv1alpha1.OperatingSystemUbuntu,
		}},
		Versions: clusterv1alpha1.MachineVersions{Kubelet: "1.36.3"},
	}
}

// fullMachine has every field of a Machine that a controller writes.
func fullMachine(namespace string) *clusterv1alpha1.Machine {
	spec := machineSpec()
	spec.Metadata = clusterv1alpha1.ObjectMeta{
		Labels:      map[string]string{"team": "a"},
		Annotations: map[string]string{"example.com/why": "because"},
	}
	spec.Taints = []clusterv1alpha1.Taint{{Key: "example.com/a", Value: "b", Effect: "NoSchedule"}}
	spec.NodeDrainTimeout = &metav1.Duration{Duration: 90 * 60 * 1e9}
	spec.NodeVolumeDetachTimeout = &metav1.Duration{Duration: 10 * 60 * 1e9}
	spec.NodeStartupTimeout = &metav1.Duration{Duration: 20 * 60 * 1e9}
	spec.MachineUID = new("2e7c5a0e-4a3f-4f2b-9d59-0f1a2b3c4d5e")
	spec.ProviderSpec.Value.SSHPublicKeys = []string{"ssh-ed25519 AAAA a@b"}
	spec.ProviderSpec.Value.OperatingSystemSpec.DistUpgradeOnBoot = true
	return &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "full", Finalizers: []string{clusterv1alpha1.MachineFinalizer}},
		Spec:       spec,
	}
}

// TestHealthChecksAreStoredAsWritten applies checks with either limit, and reads back what they
// say.
func TestHealthChecksAreStoredAsWritten(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	ranged := edited(t, checkManifest, edit{"metadata.name", "ranged"}, edit{"spec.maxUnhealthy", ""}, edit{"spec.unhealthyRange", `"[0-30]"`})
	u.do(checkManifest+"---\n"+ranged, "apply", "-f", "-")
	var checks clusterv1alpha1.MachineHealthCheckList
	if err := u.server.client.List(t.Context(), &checks, client.InNamespace(u.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(checks.Items) != 2 || checks.Items[0].Spec.UnhealthyRange != "[0-30]" || checks.Items[1].Spec.MaxUnhealthy.String() != "40%" {
		t.Errorf("stored are %+v", checks.Items)
	}
	if got := checks.Items[1].Spec.UnhealthyNodeConditions[1].Timeout.Duration; got != 90*time.Minute {
		t.Errorf("a timeout is %s", got)
	}
}

// TestClassAndClusterAreStoredAsWritten applies a class and a Cluster and reads back what they say.
func TestClassAndClusterAreStoredAsWritten(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.do(classManifest+"---"+clusterManifest, "apply", "-f", "-")
	var class clusterv1alpha1.MachineClass
	if err := u.server.client.Get(t.Context(), types.NamespacedName{Namespace: u.namespace, Name: "large"}, &class); err != nil {
		t.Fatal(err)
	}
	if got := class.NodeTemplate.Capacity["nvidia.com/gpu"]; got.Value() != 1 || class.CredentialsSecretRef.Namespace != "clouds" {
		t.Errorf("class: %+v", class)
	}
	var cluster clusterv1alpha1.Cluster
	if err := u.server.client.Get(t.Context(), types.NamespacedName{Namespace: u.namespace, Name: "blue"}, &cluster); err != nil {
		t.Fatal(err)
	}
	if got := string(cluster.Spec.ProviderSpec.Value.CloudProviderSpec.Raw); got != `{"network":"blue"}` {
		t.Errorf("cluster inherits %s", got)
	}
}
