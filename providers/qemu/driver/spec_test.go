package driver_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// What is wrong with a spec is told by its fields: what the spec alone shows always, what the host
// lacks only online.
func TestValidate(t *testing.T) {
	s := newScene(t)
	images := string(s.options.Images)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"leads-out": outside, "leads-in": "empty.raw"} {
		if err := os.Symlink(to, filepath.Join(images, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(images, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		spec            string
		offline, online []string
	}{
		"good":                      {spec: small},
		"a link to an image":        {spec: `{"image": "leads-in"}`, online: []string{"memory"}},
		"no image":                  {spec: `{}`, offline: []string{"image"}},
		"unknown field":             {spec: `{"image": "empty.raw", "flavor": "x"}`, offline: []string{"flavor"}},
		"absolute path":             {spec: `{"image": "/etc/passwd"}`, offline: []string{"image"}},
		"path that leads out":       {spec: `{"image": "../x"}`, offline: []string{"image"}},
		"kernel that leads out":     {spec: `{"image": "empty.raw", "kernel": "a/../../x"}`, offline: []string{"kernel"}},
		"initrd alone":              {spec: `{"image": "empty.raw", "initrd": "x"}`, offline: []string{"initrd"}},
		"arguments alone":           {spec: `{"image": "empty.raw", "kernelArguments": "x"}`, offline: []string{"kernelArguments"}},
		"arguments of two lines":    {spec: `{"image": "empty.raw", "kernel": "x", "kernelArguments": "a\nb"}`, offline: []string{"kernelArguments"}},
		"memory in words":           {spec: `{"image": "empty.raw", "memory": "plenty"}`, offline: []string{"memory"}},
		"too little memory":         {spec: `{"image": "empty.raw", "memory": "8Mi"}`, offline: []string{"memory"}},
		"too many cpus":             {spec: `{"image": "empty.raw", "cpus": 256}`, offline: []string{"cpus"}},
		"half a cpu":                {spec: `{"image": "empty.raw", "cpus": 0.5}`, offline: []string{"cpus"}},
		"network of another kind":   {spec: `{"image": "empty.raw", "network": {"type": "none"}}`, offline: []string{"network.type"}},
		"ports on a bridge":         {spec: `{"image": "empty.raw", "network": {"type": "bridge"}, "forwardedPorts": [{"hostPort": 1, "guestPort": 1}]}`, offline: []string{"forwardedPorts"}},
		"port out of range":         {spec: `{"image": "empty.raw", "forwardedPorts": [{"hostPort": 70000, "guestPort": 22}]}`, offline: []string{"forwardedPorts[0].hostPort"}},
		"port twice":                {spec: `{"image": "empty.raw", "forwardedPorts": [{"hostPort": 1, "guestPort": 1}, {"hostPort": 1, "guestPort": 2}]}`, offline: []string{"forwardedPorts[1].hostPort"}},
		"no such image":             {spec: `{"image": "nowhere", "memory": "64Mi"}`, online: []string{"image"}},
		"link that leads out":       {spec: `{"image": "leads-out", "memory": "64Mi"}`, online: []string{"image"}},
		"folder":                    {spec: `{"image": "folder", "memory": "64Mi"}`, online: []string{"image"}},
		"no such kernel":            {spec: `{"image": "empty.raw", "kernel": "nowhere", "memory": "64Mi"}`, online: []string{"kernel"}},
		"disk smaller than image":   {spec: `{"image": "leads-in", "memory": "64Mi", "disk": "1Mi"}`},
		"more memory than there is": {spec: `{"image": "empty.raw", "memory": "8Gi"}`, online: []string{"memory"}},
		"no bridge":                 {spec: `{"image": "empty.raw", "memory": "64Mi", "network": {"type": "bridge"}}`, online: []string{"network.type"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, online := range []bool{false, true} {
				answer, err := s.specs.ValidateProviderSpec(t.Context(), &driverv1alpha1.ValidateProviderSpecRequest{
					Meta: meta(), Provider: provider(tc.spec), Online: online,
				})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, v := range answer.GetViolations() {
					got = append(got, v.GetField())
				}
				want := tc.offline
				if online && len(tc.offline) == 0 {
					want = tc.online
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("online %v: %v, want %v", online, answer.GetViolations(), want)
				}
			}
		})
	}
}

// A create of what the host lacks can be repeated.
func TestCreateNamesWhatIsMissing(t *testing.T) {
	s := newScene(t)
	if _, err := s.create("uid", `{"image": "nowhere"}`); reason(err) != "DEPENDENCY_NOT_FOUND" {
		t.Errorf("it is answered %v", err)
	}
}

func TestDefaults(t *testing.T) {
	s := newScene(t)
	answer, err := s.specs.DefaultProviderSpec(t.Context(), &driverv1alpha1.DefaultProviderSpecRequest{Meta: meta(), Provider: provider(`{"image": "x", "cpus": 4}`)})
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(answer.GetProviderSpec(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"image": "x", "cpus": 4.0, "memory": "2Gi", "network": map[string]any{"type": "user"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestInstanceTemplate(t *testing.T) {
	s := newScene(t)
	answer, err := s.specs.GetInstanceTemplate(t.Context(), &driverv1alpha1.GetInstanceTemplateRequest{Meta: meta(), Provider: provider(`{"image": "x", "cpus": 4}`)})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"cpu": "4", "memory": "2048Mi", "pods": "110"}
	if diff := cmp.Diff(want, answer.GetTemplate().GetCapacity()); diff != "" || answer.GetTemplate().GetOperatingSystem() != "linux" {
		t.Errorf("%s %v", diff, answer.GetTemplate())
	}
}
