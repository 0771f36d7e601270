package discovery

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/core/bootstrap/template"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

func TestMain(m *testing.M) { os.Exit(controllertest.Run(m)) }

// newClient returns a client of the API server, and a namespace.
func newClient(t *testing.T) (client.Client, string) {
	t.Helper()
	c := controllertest.New(t)
	if err := discoveryv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	return c, c.Namespace
}

// put makes objects for one test.
func put(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		})
	}
}

func configMap(namespace, name, key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{key: value}}
}

const clusterInfo = `apiVersion: v1
kind: Config
clusters:
- name: ""
  cluster: {server: "https://info.example.com:6443", certificate-authority-data: aW5mbw==}
`

func newResolver(c client.Reader, clock *testingclock.FakePassiveClock, flags bootstrap.Config) *Resolver {
	return New(Options{Flags: flags, Management: c, ConfigMaps: c, Workload: c, Clock: clock})
}

func TestAPI3_WhatIsMissingNamesThePlaces(t *testing.T) {
	c, ns := newClient(t)
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns}}
	r := newResolver(c, testingclock.NewFakePassiveClock(time.Now()), bootstrap.Config{})
	_, err := r.Config(t.Context(), m)
	incomplete, is := errors.AsType[*IncompleteError](err)
	if !is {
		t.Fatalf("Config() = %v, want an IncompleteError", err)
	}
	for _, place := range []string{"spec.apiEndpoints", "--node-api-server", "kube-public/cluster-info", "spec.bootstrap.caBundle", "--node-ca-bundle"} {
		if !strings.Contains(incomplete.Message, place) {
			t.Errorf("%q does not name %s", incomplete.Message, place)
		}
	}
	m.Spec.ClusterRef = &clusterv1alpha1.LocalReference{Name: "gone"}
	if _, err := r.Config(t.Context(), m); err == nil || !strings.Contains(err.Error(), "spec.clusterRef") {
		t.Errorf("without its Cluster: %v", err)
	}
}

// The first place that has a field wins: annotation, Cluster, flag, the cluster itself, default.
func TestAPI3_TheFirstPlaceWins(t *testing.T) {
	c, ns := newClient(t)
	clock := testingclock.NewFakePassiveClock(time.Now())
	put(t, c, configMap("kube-public", "cluster-info", "kubeconfig", clusterInfo),
		configMap("kube-system", "kubelet-config", "kubelet", "clusterDNS: [10.9.0.10]\nclusterDomain: kubeadm.example.com\n"))
	owner := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"}}
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns}}
	flags := bootstrap.Config{PauseImage: "flag.example.com/pause:1", ClusterDomain: "flag.example.com"}
	r := newResolver(c, clock, flags)

	got, err := r.Config(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if got.Server != "https://info.example.com:6443" || string(got.CABundle) != "info" || !strings.Contains(string(got.ClientCABundle), "BEGIN") {
		t.Errorf("discovered is server %s, CA %q, clients' CA %.20q", got.Server, got.CABundle, got.ClientCABundle)
	}
	if got.ClusterDNS[0] != "10.9.0.10" || got.ClusterDomain != "flag.example.com" || got.PauseImage != "flag.example.com/pause:1" {
		t.Errorf("the flag, then kubelet-config: %v, %s, %s", got.ClusterDNS, got.ClusterDomain, got.PauseImage)
	}

	owner.Spec = clusterv1alpha1.ClusterSpec{
		APIEndpoints:   []clusterv1alpha1.APIEndpoint{{Host: "fd00::1", Port: 6443}},
		ClusterNetwork: &clusterv1alpha1.ClusterNetwork{ServiceDomain: "own.example.com"},
		Bootstrap: &clusterv1alpha1.ClusterBootstrap{
			CABundle: "own", PauseImage: "own.example.com/pause:1", ExternalCloudProvider: new(false),
			RegistryMirrors: map[string]clusterv1alpha1.RegistryMirrors{"docker.io": {"https://m.example.com"}},
			Files:           []clusterv1alpha1.BootstrapFile{{Path: "/etc/own", Content: "x", Permissions: "0600"}},
			StartupTaints:   []clusterv1alpha1.Taint{{Key: "starting", Effect: corev1.TaintEffectNoSchedule}},
			Artifacts:       &clusterv1alpha1.ArtifactSources{DigestsConfigMap: &clusterv1alpha1.LocalReference{Name: "digests"}},
		},
	}
	put(t, c, owner, configMap(ns, "digests", "sha256sums", "ab  dl.k8s.io/kubelet\ncd *example.com/x\n"))
	m.Spec.ClusterRef = &clusterv1alpha1.LocalReference{Name: "one"}
	m.Annotations = map[string]string{"v1.kubelet-flags.machine-controller.kubermatic.io/ExternalCloudProvider": "true"}
	if got, err = r.Config(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	want := bootstrap.Config{
		Server: "https://[fd00::1]:6443", CABundle: []byte("own"), ClientCABundle: got.ClientCABundle, ClusterDNS: []string{"10.9.0.10"},
		ClusterDomain: "own.example.com", PauseImage: "own.example.com/pause:1", ExternalCloudProvider: true,
		RegistryMirrors: map[string][]string{"docker.io": {"https://m.example.com"}},
		Files:           []bootstrap.File{{Path: "/etc/own", Content: "x", Mode: 0o600}},
		StartupTaints:   []corev1.Taint{{Key: "starting", Effect: corev1.TaintEffectNoSchedule}},
		Digests:         map[string]string{"dl.k8s.io/kubelet": "ab", "example.com/x": "cd"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// failing is an API server that is away, or knows of no rights, after the first calls.
type failing struct {
	client.Reader
	away, forbids bool
}

func (f *failing) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if f.away {
		return apierrors.NewTimeoutError("away", 1)
	}
	if f.forbids {
		return apierrors.NewForbidden(corev1.Resource("configmaps"), key.Name, errors.New("no"))
	}
	return f.Reader.Get(ctx, key, o, opts...)
}

func TestWhatWasReadHoldsWhileTheAPIServerIsAway(t *testing.T) {
	c, ns := newClient(t)
	clock := testingclock.NewFakePassiveClock(time.Now())
	info := configMap("kube-public", "cluster-info", "kubeconfig", clusterInfo)
	put(t, c, info)
	reader := &failing{Reader: c}
	r := newResolver(reader, clock, bootstrap.Config{ClusterDNS: []string{"10.96.0.10"}})
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns}}
	if _, err := r.Config(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	reader.away = true
	clock.SetTime(clock.Now().Add(2 * kept))
	if _, err := r.Config(t.Context(), m); err != nil {
		t.Errorf("while the API server is away: %v", err)
	}
	reader.away = false
	info.Data["kubeconfig"] = strings.Replace(clusterInfo, "server:", "tls-server-name: other.example.com, server:", 1)
	if err := c.Update(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(2 * kept))
	if _, err := r.Config(t.Context(), m); err == nil || !strings.Contains(err.Error(), "tls-server-name") {
		t.Errorf("a tls-server-name, which kubelets lose: %v", err)
	}
	reader.away = true
	if _, err := newResolver(reader, clock, bootstrap.Config{}).Config(t.Context(), m); err == nil {
		t.Error("nothing was ever read, and that is no error")
	} else if _, is := errors.AsType[*IncompleteError](err); is {
		t.Errorf("the user is told of what only the API server can mend: %v", err)
	}
}

// A Machine that runs is looked at with its start-up taints. They are known without another API
// server, and where the Cluster is not there.
func TestLIFE5_StartupTaintsNeedNoDiscovery(t *testing.T) {
	c, ns := newClient(t)
	of := func(key string) []corev1.Taint {
		return []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}
	}
	for name, says := range map[string]*clusterv1alpha1.ClusterBootstrap{
		"bare": nil, "silent": {}, "own": {StartupTaints: []clusterv1alpha1.Taint{{Key: "cluster", Effect: corev1.TaintEffectNoSchedule}}},
	} {
		put(t, c, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: clusterv1alpha1.ClusterSpec{Bootstrap: says}})
	}
	r := New(Options{
		Flags: bootstrap.Config{StartupTaints: of("flag")}, Management: c,
		ConfigMaps: &failing{away: true}, Workload: &failing{away: true}, Clock: testingclock.NewFakePassiveClock(time.Now()),
	})
	for ref, want := range map[string]string{"": "flag", "bare": "flag", "silent": "flag", "missing": "flag", "own": "cluster"} {
		m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns}}
		if ref != "" {
			m.Spec.ClusterRef = &clusterv1alpha1.LocalReference{Name: ref}
		}
		got, err := r.StartupTaints(t.Context(), m)
		if diff := cmp.Diff(of(want), got); diff != "" || err != nil {
			t.Errorf("with Cluster %q: %v (-want +got):\n%s", ref, err, diff)
		}
	}
	r.o.Management = &failing{away: true}
	m := &clusterv1alpha1.Machine{Spec: clusterv1alpha1.MachineSpec{ClusterRef: &clusterv1alpha1.LocalReference{Name: "own"}}}
	if got, err := r.StartupTaints(t.Context(), m); err == nil {
		t.Errorf("where the Cluster cannot be read: %v, and no error", got)
	}
}

// An API server that has just started forbids everything for a moment. Machines that are made then
// join as they did before, not by the next best address.
func TestWhatWasReadHoldsWhileTheAPIServerKnowsNoRights(t *testing.T) {
	c, ns := newClient(t)
	clock := testingclock.NewFakePassiveClock(time.Now())
	put(t, c, configMap("kube-public", "cluster-info", "kubeconfig", clusterInfo))
	reader := &failing{Reader: c}
	r := newResolver(reader, clock, bootstrap.Config{ClusterDNS: []string{"10.96.0.10"}})
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns}}
	before, err := r.Config(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	for _, reader.forbids = range []bool{true, false} {
		clock.SetTime(clock.Now().Add(2 * kept))
		got, err := r.Config(t.Context(), m)
		if err != nil {
			t.Fatalf("forbidden is %t: %v", reader.forbids, err)
		}
		if diff := cmp.Diff(before, got); diff != "" {
			t.Errorf("forbidden is %t (-before +now):\n%s", reader.forbids, diff)
		}
	}
}

// An operator who takes rights away for good is told what is missing, as if there had been none.
func TestRightsThatAreTakenAwayShow(t *testing.T) {
	c, ns := newClient(t)
	clock := testingclock.NewFakePassiveClock(time.Now())
	put(t, c, configMap("kube-public", "cluster-info", "kubeconfig", clusterInfo), configMap(ns, "templates", "ubuntu", "files: []"))
	reader := &failing{Reader: c}
	flags := bootstrap.Config{ClusterDNS: []string{"10.96.0.10"}}
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns}}
	templated := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Annotations: map[string]string{clusterv1alpha1.BootstrapTemplatesAnnotation: "templates"},
	}}
	templated.Spec.ProviderSpec.Value.OperatingSystem = clusterv1alpha1.OperatingSystemUbuntu
	ofWorkload := newResolver(reader, clock, flags)
	ofConfigMaps := New(Options{Flags: flags, Management: c, ConfigMaps: reader, Workload: c, Clock: clock})
	for range 3 + keptRefused/kept {
		_, err := ofWorkload.Config(t.Context(), m)
		_, errTemplated := ofConfigMaps.Config(t.Context(), templated)
		if reader.forbids && (err != nil || errTemplated != nil) {
			break
		}
		if err != nil || errTemplated != nil {
			t.Fatal(err, errTemplated)
		}
		reader.forbids = true
		clock.SetTime(clock.Now().Add(kept))
	}
	wantIncomplete(t, ofWorkload, m, "unknown is the API server's address")
	wantIncomplete(t, ofConfigMaps, templated, `annotation cluster.k8s.io/bootstrap-templates: configmaps "templates" is forbidden: no`)
}

// What ConfigMaps hold is kept in the same way. One that is gone, or wrong, is not.
func TestLIFE2_WhatConfigMapsHoldIsKept(t *testing.T) {
	c, ns := newClient(t)
	clock := testingclock.NewFakePassiveClock(time.Now())
	templates, digests := configMap(ns, "templates", "ubuntu", "files: []"), configMap(ns, "digests", "sha256sums", "ab  dl.k8s.io/kubelet")
	owner := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"}}
	owner.Spec.Bootstrap = &clusterv1alpha1.ClusterBootstrap{
		Artifacts: &clusterv1alpha1.ArtifactSources{DigestsConfigMap: &clusterv1alpha1.LocalReference{Name: "digests"}},
	}
	put(t, c, owner, templates, digests)
	reader := &failing{Reader: c}
	flags := bootstrap.Config{Server: "https://a", CABundle: []byte("a"), ClientCABundle: []byte("a"), ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "a"}
	newOne := func() *Resolver {
		return New(Options{Flags: flags, Management: c, ConfigMaps: reader, Workload: c, Clock: clock})
	}
	ofTemplates := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Annotations: map[string]string{clusterv1alpha1.BootstrapTemplatesAnnotation: "templates"},
	}}
	ofTemplates.Spec.ProviderSpec.Value.OperatingSystem = clusterv1alpha1.OperatingSystemUbuntu
	ofDigests := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns}}
	ofDigests.Spec.ClusterRef = &clusterv1alpha1.LocalReference{Name: "one"}
	for named, tc := range map[string]struct {
		machine *clusterv1alpha1.Machine
		from    *corev1.ConfigMap
	}{
		"annotation cluster.k8s.io/bootstrap-templates: ":            {ofTemplates, templates},
		"spec.bootstrap.artifacts.digestsConfigMap of the Cluster: ": {ofDigests, digests},
	} {
		t.Run(tc.from.Name, func(t *testing.T) {
			r := newOne()
			before, err := r.Config(t.Context(), tc.machine)
			if err != nil {
				t.Fatal(err)
			}
			for name, answers := range map[string]failing{"away": {away: true}, "forbids": {forbids: true}, "back": {}} {
				reader.away, reader.forbids = answers.away, answers.forbids
				clock.SetTime(clock.Now().Add(2 * kept))
				if got, err := r.Config(t.Context(), tc.machine); err != nil || !cmp.Equal(before, got, cmpopts.IgnoreUnexported(template.Document{})) {
					t.Errorf("%s: %v, %+v, want %+v", name, err, got, before)
				}
			}
			reader.away, reader.forbids = false, true
			wantIncomplete(t, newOne(), tc.machine, named+`configmaps "`+tc.from.Name+`" is forbidden: no`)
			reader.forbids = false
			changed := tc.from.DeepCopy()
			changed.Data = nil
			if err := c.Update(t.Context(), changed); err != nil {
				t.Fatal(err)
			}
			clock.SetTime(clock.Now().Add(2 * kept))
			wantIncomplete(t, r, tc.machine, "ConfigMap "+ns+"/"+tc.from.Name)
			if err := c.Delete(t.Context(), changed); err != nil {
				t.Fatal(err)
			}
			clock.SetTime(clock.Now().Add(keptIncomplete - 1))
			wantIncomplete(t, r, tc.machine, "ConfigMap "+ns+"/"+tc.from.Name)
			clock.SetTime(clock.Now().Add(1))
			wantIncomplete(t, r, tc.machine, named+`configmaps "`+tc.from.Name+`" not found`)
			reader.away = true
			clock.SetTime(clock.Now().Add(keptIncomplete))
			defer func() { reader.away = false }()
			_, err = r.Config(t.Context(), tc.machine)
			if _, is := errors.AsType[*IncompleteError](err); err == nil || is {
				t.Errorf("there is nothing to hold while the API server is away: %v", err)
			}
		})
	}
}

// wantIncomplete wants the user to be told something.
func wantIncomplete(t *testing.T, r *Resolver, m *clusterv1alpha1.Machine, begin string) {
	t.Helper()
	_, err := r.Config(t.Context(), m)
	if _, is := errors.AsType[*IncompleteError](err); !is || !strings.HasPrefix(err.Error(), begin) {
		t.Errorf("error %v, want %s…", err, begin)
	}
}

// While one caller asks, the others go on with the last answer.
func TestAnAPIServerThatIsSlowHoldsUpOneCaller(t *testing.T) {
	var a Answer[string]
	now := time.Now()
	asks := func(says string, err error) func(*string) (string, error) {
		return func(*string) (string, error) { return says, err }
	}
	want := func(now time.Time, ask func(*string) (string, error), want string) {
		t.Helper()
		if got, err := a.Get(now, ask); got != want || err != nil {
			t.Errorf("Get() = %q, %v, want %q", got, err, want)
		}
	}
	want(now, asks("first", nil), "first")
	want(now.Add(kept-1), asks("early", nil), "first")
	want(now.Add(kept), func(last *string) (string, error) {
		if *last != "first" {
			t.Errorf("the last answer is %q", *last)
		}
		want(now.Add(kept), asks("second", nil), "first")
		return "third", nil
	}, "third")
	want(now.Add(2*kept), asks("", errors.New("away")), "third")
	want(now.Add(2*kept), asks("early", nil), "third")
}

func TestTenthAddress(t *testing.T) {
	for name, c := range map[string]struct {
		ranges []string
		first  string
		want   string
	}{
		"of a range":             {[]string{"10.96.0.0/12"}, "", "10.96.0.10"},
		"of a range of IPv6":     {[]string{"fd00::/112", "10.96.0.0/12"}, "10.0.0.1", "fd00::a"},
		"from the first address": {nil, "10.0.0.1", "10.0.0.10"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tenthAddress(c.ranges, c.first); len(got) != 1 || got[0] != c.want {
				t.Errorf("tenthAddress() = %v, want %s", got, c.want)
			}
		})
	}
	if got := tenthAddress(nil, ""); got != nil {
		t.Errorf("of nothing comes %v", got)
	}
}

// TestLIFE2_TemplatesAreFound: by the Machine's annotation, else by its Cluster's.
func TestLIFE2_TemplatesAreFound(t *testing.T) {
	c, ns := newClient(t)
	clock := testingclock.NewFakePassiveClock(time.Now())
	owner := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: "one", Annotations: map[string]string{clusterv1alpha1.BootstrapTemplatesAnnotation: "of-the-cluster"},
	}}
	put(t, c, owner, configMap(ns, "of-the-cluster", "ubuntu", "files: [{path: /etc/a, content: cluster}]"),
		configMap(ns, "of-the-machine", "ubuntu", "files: [{path: /etc/a, content: machine}]"), configMap(ns, "wrong", "ubuntu", "file: []"))
	flags := bootstrap.Config{Server: "https://a", CABundle: []byte("a"), ClientCABundle: []byte("a"), ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "a"}
	r := newResolver(c, clock, flags)
	for name, tc := range map[string]struct {
		annotation string
		clusterRef *clusterv1alpha1.LocalReference
		system     clusterv1alpha1.OperatingSystem
		want       string
		wrong      string
	}{
		"none":                  {system: "ubuntu"},
		"the Cluster's":         {clusterRef: &clusterv1alpha1.LocalReference{Name: "one"}, system: "ubuntu", want: "cluster"},
		"the Machine's":         {"of-the-machine", &clusterv1alpha1.LocalReference{Name: "one"}, "ubuntu", "machine", ""},
		"one that is not there": {"gone", nil, "ubuntu", "", `annotation cluster.k8s.io/bootstrap-templates: configmaps "gone" not found`},
		"another system's":      {"of-the-machine", nil, "flatcar", "", `of-the-machine has no key "flatcar"`},
		"a wrong field":         {"wrong", nil, "ubuntu", "", `wrong: key ubuntu: unknown field "file"`},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns}}
			if tc.annotation != "" {
				m.Annotations = map[string]string{clusterv1alpha1.BootstrapTemplatesAnnotation: tc.annotation}
			}
			m.Spec.ClusterRef, m.Spec.ProviderSpec.Value.OperatingSystem = tc.clusterRef, tc.system
			got, err := r.Config(t.Context(), m)
			if _, is := errors.AsType[*IncompleteError](err); tc.wrong != "" {
				if !is || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("error %v, want %s", err, tc.wrong)
				}
				return
			}
			if err != nil || (got.Templates == nil) != (tc.want == "") {
				t.Fatalf("templates %v, %v", got.Templates, err)
			}
			if got.Templates == nil {
				return
			}
			if files, _, err := got.Templates.Render(nil); err != nil || len(files) != 1 || files[0].Content != tc.want {
				t.Errorf("files %v, %v", files, err)
			}
		})
	}
}
