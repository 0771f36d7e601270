package machine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/core/bootstrap/discovery"
	"github.com/millwright-dev/millwright/core/bootstrap/token"
	"github.com/millwright-dev/millwright/core/providerspec"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// ownData has a machine bring the user data of a Secret.
func ownData(secret string) func(*clusterv1alpha1.Machine) {
	return func(m *clusterv1alpha1.Machine) {
		m.Spec.Bootstrap = &clusterv1alpha1.MachineBootstrap{DataSecretName: secret}
	}
}

func (b *bench) newSecret(name, key, value string) *corev1.Secret {
	b.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, StringData: map[string]string{key: value},
	}
	b.check(server.user.Create(b.Context(), secret))
	return secret
}

// sent is the user data of the first create.
func (b *bench) sent() string {
	b.Helper()
	var data string
	b.cloud.change(func() { data = string(b.cloud.creates[0].GetUserData()) })
	return data
}

// recordReasons watches the Machine; the function that it returns waits until that is gone, and
// returns all reasons that its condition BootstrapReady has had.
func (b *bench) recordReasons(m *clusterv1alpha1.Machine) func() []string {
	b.Helper()
	watcher, err := client.NewWithWatch(server.config, client.Options{Scheme: server.scheme})
	b.check(err)
	changes, err := watcher.Watch(b.Context(), &clusterv1alpha1.MachineList{}, client.InNamespace(m.Namespace),
		client.MatchingFields{"metadata.name": m.Name}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: m.ResourceVersion}})
	b.check(err)
	return func() (reasons []string) {
		defer changes.Stop()
		for change := range changes.ResultChan() {
			now, is := change.Object.(*clusterv1alpha1.Machine)
			if !is || change.Type == watch.Deleted {
				return reasons
			}
			if c := apimeta.FindStatusCondition(now.Status.Conditions, clusterv1alpha1.ConditionBootstrapReady); c != nil {
				reasons = append(reasons, c.Reason)
			}
		}
		return reasons
	}
}

// TestLIFE2_AMachineBringsItsOwnUserData: its name and token are put in their places, the token
// lives as any other's, and a Secret that changes afterwards replaces nothing.
func TestLIFE2_AMachineBringsItsOwnUserData(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	secret := b.newSecret("own", "value", "join <<MACHINE_NAME>> <<BOOTSTRAP_TOKEN>> data:,%3C%3CMACHINE_NAME%3E%3E")
	m := b.awaitPhase(b.newMachine("a", ownData("own")), clusterv1alpha1.MachinePhaseProvisioned)
	words := strings.Fields(b.sent())
	if len(words) != 4 || words[1] != m.Name || len(words[2]) != len("abcdef.0123456789abcdef") || words[3] != "data:,"+m.Name {
		t.Errorf("the user data is %q", words)
	}
	b.check(server.user.Get(t.Context(), token.Key(token.ID(*m.Spec.MachineUID)), &corev1.Secret{}))
	secret.StringData = map[string]string{"value": "something else"}
	b.check(server.user.Update(b.Context(), secret))
	node := b.newNode(m)
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.awaitReason(m, clusterv1alpha1.ConditionBootstrapReady, clusterv1alpha1.ReasonBootstrapTokenDeleted)
	if creates, _ := b.cloud.count(); creates != 1 {
		t.Errorf("%d creates after the Secret has changed, want the one before", creates)
	}
	b.remove(m)
	b.awaitGone(m)
	b.awaitGone(node)
}

// TestLIFE3_UserDataWithoutAPlaceForATokenGetsNone: no token is minted, and the status says from
// the first write on that none is waited for, also to the next process.
func TestLIFE3_UserDataWithoutAPlaceForATokenGetsNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	stop := b.startCore()
	b.newSecret("own", "userData", "#!/bin/sh\njoin by-another-way\n")
	m := b.newMachine("a", ownData("own"))
	says := b.recordReasons(m)
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
	stop()
	b.startCore()
	node := b.newNode(m)
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.remove(m)
	b.awaitGone(m)
	b.awaitGone(node)
	for _, w := range b.writes.take() {
		if strings.Contains(w, "/secrets") {
			t.Errorf("a token was written: %s", w)
		}
	}
	reasons := says()
	if len(reasons) == 0 {
		t.Error("BootstrapReady said nothing")
	}
	for _, reason := range reasons {
		if reason != clusterv1alpha1.ReasonBootstrapTokenNotNeeded {
			t.Errorf("BootstrapReady said %s", reason)
		}
	}
}

// TestLIFE2_MissingUserDataIsNamed: nothing is created until the Secret has what is wanted.
func TestLIFE2_MissingUserDataIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	b.newSecret("other-key", "data", "x")
	b.newSecret("empty", "value", " \n")
	for secret, names := range map[string]string{
		"not-there": "spec.bootstrap.dataSecretName: Secret " + b.namespace + "/not-there is not there",
		"other-key": `Secret ` + b.namespace + `/other-key: it has neither key "value" nor key "userData"`,
		"empty":     `Secret ` + b.namespace + `/empty: key "value" is empty`,
	} {
		m := b.newMachine(secret, ownData(secret))
		if c := b.awaitReason(m, clusterv1alpha1.ConditionBootstrapReady, clusterv1alpha1.ReasonBootstrapInvalid); !strings.Contains(c.Message, names) {
			t.Errorf("%s: the condition says %q", secret, c.Message)
		}
	}
	if creates, _ := b.cloud.count(); creates != 0 {
		t.Errorf("%d creates without user data", creates)
	}
	b.newSecret("not-there", "value", "here it is")
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: b.namespace + "-not-there"}}
	b.await("a VM with the Secret that is there now", func() (bool, any) {
		// Nobody watches Secrets: a change of the Machine has it looked at before its time.
		look := fmt.Appendf(nil, `{"metadata":{"annotations":{"look":"%d"}}}`, time.Now().UnixNano())
		b.check(server.user.Patch(b.Context(), m, client.RawPatch(types.MergePatchType, look)))
		return m.Status.Phase == clusterv1alpha1.MachinePhaseProvisioned, m.Status
	})
}

// TestLIFE2_AClassBringsUserData: key userData of a MachineClass's Secret, unless the machine has
// its own.
func TestLIFE2_AClassBringsUserData(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	b.newSecret("class", "userData", "of the class")
	b.newSecret("own", "value", "of the machine")
	b.check(server.user.Create(b.Context(), &clusterv1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "large"}, Provider: provider,
		ProviderSpec: runtime.RawExtension{Raw: []byte(`{"size":"l"}`)}, SecretRef: &clusterv1alpha1.SecretReference{Name: "class"},
	}))
	ofClass := func(m *clusterv1alpha1.Machine) {
		value := &m.Spec.ProviderSpec.Value
		value.CloudProvider, value.CloudProviderSpec = "", runtime.RawExtension{}
		m.Spec.ProviderSpec.ValueFrom = &clusterv1alpha1.ProviderSpecSource{MachineClass: clusterv1alpha1.LocalReference{Name: "large"}}
	}
	for _, c := range []struct {
		machine string
		change  []func(*clusterv1alpha1.Machine)
		want    string
	}{
		{"a", []func(*clusterv1alpha1.Machine){ofClass}, "of the class"},
		{"b", []func(*clusterv1alpha1.Machine){ofClass, ownData("own")}, "of the machine"},
	} {
		m := b.awaitPhase(b.newMachine(c.machine, c.change...), clusterv1alpha1.MachinePhaseProvisioned)
		b.awaitReason(m, clusterv1alpha1.ConditionBootstrapReady, clusterv1alpha1.ReasonBootstrapTokenNotNeeded)
		b.cloud.change(func() {
			for _, create := range b.cloud.creates {
				if got := string(create.GetUserData()); create.GetMachine().GetName() == m.Name && got != c.want {
					t.Errorf("%s got %q", m.Name, got)
				}
			}
		})
	}
}

// secretless fails its test when a Secret is read.
type secretless struct {
	client.Reader
	*testing.T
}

func (s secretless) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	s.Errorf("%s is read", key)
	return nil
}

// incomplete is a configuration that something is missing from.
type incomplete struct{ BootstrapConfigs }

func (incomplete) Config(context.Context, *clusterv1alpha1.Machine) (bootstrap.Config, error) {
	return bootstrap.Config{}, &discovery.IncompleteError{Message: "the API server's CA is missing"}
}

// TestLIFE2_UserDataIsCheckedWithoutAReadOfSecrets: each reconcile checks the user data that is
// rendered. Whether a machine brings its own is read at its create alone.
func TestLIFE2_UserDataIsCheckedWithoutAReadOfSecrets(t *testing.T) {
	known, err := providerspec.Compile([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	ofClass := []clusterv1alpha1.SecretReference{{Name: "class"}}
	for name, c := range map[string]struct {
		named   string
		ofClass []clusterv1alpha1.SecretReference
		secrets map[string][]byte
		checked bool
	}{
		"a machine":                          {checked: true},
		"one with a Secret of its own":       {named: "own"},
		"a class without user data":          {ofClass: ofClass, secrets: map[string][]byte{"password": nil}, checked: true},
		"a class with user data":             {ofClass: ofClass, secrets: map[string][]byte{"userData": []byte("x")}},
		"a class whose Secret is not there":  {ofClass: ofClass},
		"a Cluster whose Secret has the key": {secrets: map[string][]byte{"userData": []byte("x")}, checked: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &machineScope{machine: &clusterv1alpha1.Machine{}}
			ownData(c.named)(s.machine)
			e := specresolver.Effective{Namespace: "ns", Spec: []byte("{}"), Credentials: c.ofClass, OfClass: c.ofClass}
			checked, err := specresolver.New(secretless{T: t}, specresolver.Options{}).Check(t.Context(), e, known)
			if err != nil {
				t.Fatal(err)
			}
			s.provision = provision{effective: e, checked: checked, secrets: c.secrets}
			if err := (userData{configs: incomplete{}}).check(t.Context(), s); err != nil || (s.state.BootstrapError != "") != c.checked {
				t.Errorf("says %q, %v, want it checked: %t", s.state.BootstrapError, err, c.checked)
			}
		})
	}
}

// TestSAFE8_AConsoleTellsNothingOfOwnUserData: what the Secret holds is taken out of what the
// console says.
func TestSAFE8_AConsoleTellsNothingOfOwnUserData(t *testing.T) {
	t.Parallel()
	const secret = "c4nary-in-the-user-data"
	b := newBench(t)
	b.cloud.console = []byte("cloud-init: password: " + secret + " is refused\nlogin: ")
	b.serve()
	b.startCore()
	b.newSecret("own", "value", "#cloud-config\npassword: "+secret+"\n")
	m := b.awaitPhase(b.newMachine("a", startup(time.Second), ownData("own")), clusterv1alpha1.MachinePhaseFailed)
	c := b.awaitReason(m, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonJoinTimeout)
	if strings.Contains(c.Message, "c4nary") || !strings.Contains(c.Message, "is refused\nlogin:") {
		t.Errorf("the condition says %q", c.Message)
	}
}
