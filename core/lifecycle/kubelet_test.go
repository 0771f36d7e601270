package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// kubelet has the Node's kubelet say its version, and the spec ask for another.
func kubelet(said, wanted string) func(*State) {
	return func(s *State) {
		s.Machine.KubeletVersion = wanted
		s.Node.Info = clusterv1alpha1.NodeInfo{KubeletVersion: said, ContainerRuntimeVersion: "containerd://2.3.1", Architecture: "amd64"}
	}
}

// TestKubeletVersionIsCompared: a condition is there only while the versions differ.
func TestKubeletVersionIsCompared(t *testing.T) {
	for name, c := range map[string]struct{ said, wanted, message string }{
		"the same":               {said: "v1.36.3", wanted: "1.36.3"},
		"the same, with a v":     {said: "v1.36.3", wanted: "v1.36.3"},
		"another build of it":    {said: "v1.36.3+k3s1", wanted: "1.36.3"},
		"another patch":          {"v1.36.2", "1.36.3", "The Node's kubelet is 1.36.2, spec.versions.kubelet is 1.36.3."},
		"a release candidate":    {"v1.36.3-rc.0", "1.36.3", "The Node's kubelet is 1.36.3-rc.0, spec.versions.kubelet is 1.36.3."},
		"a Node that says none":  {wanted: "1.36.3"},
		"a spec that wants none": {said: "v1.36.3"},
	} {
		t.Run(name, func(t *testing.T) {
			step := Next(given(provisioned, joined("True"), kubelet(c.said, c.wanted)))
			got := step.Status.Condition(clusterv1alpha1.ConditionKubeletVersionMatches)
			if got.Message != c.message || got.Type != "" && got.Reason != clusterv1alpha1.ReasonKubeletVersionDiffers {
				t.Errorf("%+v, want %q", got, c.message)
			}
			if info := step.Status.NodeInfo; (info == nil) != (c.said == "") || info != nil && info.KubeletVersion != c.said {
				t.Errorf("nodeInfo is %+v", info)
			}
		})
	}
}

// TestOPS2_NodeInfoComesWithOtherNews: of a machine of a manager that did not write it down it is
// not written by itself. What changes is, and goes with the Node. A paused machine stays as it is.
func TestOPS2_NodeInfoComesWithOtherNews(t *testing.T) {
	known := all(running, joined("True"), kubelet("v1.36.3", "1.36.3"))
	recorded := all(known, func(s *State) {
		s.Machine.Generation++
		s.Machine.Status = Next(*s).Status
	})
	paused := func(s *State) {
		s.Machine.Paused = Pause{Reason: "PausedByAnnotation", Message: "Paused."}
		s.Machine.Status = Next(*s).Status
	}
	for name, c := range map[string]struct {
		given func(*State)
		write bool
		want  string
	}{
		"not written down yet":     {known, false, "v1.36.3"},
		"written down":             {recorded, false, "v1.36.3"},
		"another kubelet":          {all(recorded, kubelet("v1.37.0", "1.36.3")), true, "v1.37.0"},
		"another, of one paused":   {all(recorded, paused, kubelet("v1.37.0", "1.36.3")), false, "v1.36.3"},
		"the Node is gone":         {all(recorded, func(s *State) { s.Node = Node{} }), true, ""},
		"a Node that says no more": {all(recorded, kubelet("", "1.36.3")), false, "v1.36.3"},
	} {
		t.Run(name, func(t *testing.T) {
			step := Next(given(c.given))
			var got string
			if info := step.Status.NodeInfo; info != nil {
				got = info.KubeletVersion
			}
			if step.Write != c.write || got != c.want {
				t.Errorf("writes %t, nodeInfo %q", step.Write, got)
			}
		})
	}
	if diff := cmp.Diff(&clusterv1alpha1.NodeInfo{KubeletVersion: "v1.36.3", ContainerRuntimeVersion: "containerd://2.3.1", Architecture: "amd64"},
		given(recorded).Machine.Status.NodeInfo); diff != "" {
		t.Error(diff)
	}
}
