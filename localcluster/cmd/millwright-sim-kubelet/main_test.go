package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestFlagsThatCannotWork(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(broken, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := flags{kubeconfig: broken, backend: "unix:///nowhere", cpu: "1", memory: "1Gi", pods: "1"}
	cases := map[string]struct {
		change func(*flags)
		want   string
	}{
		"no kubeconfig":     {func(f *flags) { f.kubeconfig = "" }, "--kubeconfig"},
		"no backend":        {func(f *flags) { f.backend = "" }, "--backend"},
		"no quantity":       {func(f *flags) { f.memory = "much" }, "--memory"},
		"broken kubeconfig": {func(*flags) {}, "kubeconfig"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := good
			c.change(&f)
			err := run(t.Context(), slog.New(slog.DiscardHandler), f)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that names %q", err, c.want)
			}
		})
	}
}

func TestCapacity(t *testing.T) {
	got, err := flags{cpu: "2", memory: "8Gi", pods: "30"}.capacity()
	if err != nil {
		t.Fatal(err)
	}
	want := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("30"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
