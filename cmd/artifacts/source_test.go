package artifacts

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
)

// site has files by path, and redirects what is below /moved.
type site map[string]string

func (s site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, found := s[r.URL.Path]
	if target, moved := strings.CutPrefix(content, "moved to "); moved {
		http.Redirect(w, r, target, http.StatusFound)
		return
	}
	if !found {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(content))
}

func sum(content string) string {
	digest := sha256.Sum256([]byte(content))
	return hex.EncodeToString(digest[:])
}

// newSite has the artifacts of a machine, each as long as its location, and their sums as their
// sites write them: alone, or in a list.
func newSite() (site, []bootstrap.Artifact) {
	all := bootstrap.Artifacts(clusterv1alpha1.OperatingSystemUbuntu, "1.36.3")
	s := site{}
	for _, a := range all {
		s["/"+a.Location] = a.Location
		if a.Name == "kubelet" {
			s["/"+a.Sums] = sum(a.Location)
		} else {
			s["/"+a.Sums] += sum(a.Location) + "  " + filepath.Base(a.Location) + "\n"
		}
	}
	return s, all
}

func newSource(t *testing.T, s site) (Source, *httptest.Server) {
	t.Helper()
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	return Source{Client: server.Client(), Mirror: server.URL + "/", Log: slog.New(slog.DiscardHandler)}, server
}

func TestLIFE2_AMirrorHasWhatMachinesAskFor(t *testing.T) {
	files, all := newSite()
	source, _ := newSource(t, files)
	printed, err := source.Digests(t.Context(), all, "")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	// An earlier run was killed; another left a file that has been altered since.
	if err := place(filepath.Join(folder, all[0].Location), strings.NewReader("altered"), ""); err != nil {
		t.Fatal(err)
	}
	downloaded, err := source.Digests(t.Context(), all, folder)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(printed, downloaded); diff != "" {
		t.Errorf("digests without and with a download:\n%s", diff)
	}
	got := site{}
	err = filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		got[strings.TrimPrefix(name, folder)] = string(content)
		return err
	})
	if diff := cmp.Diff(files, got); diff != "" || err != nil {
		t.Errorf("the mirror (-site +folder): %v\n%s", err, diff)
	}
	for path := range files {
		if !strings.Contains(path, "sha256") {
			delete(files, path)
		}
	}
	if _, err := source.Digests(t.Context(), all, folder); err != nil {
		t.Errorf("what is there is downloaded again: %v", err)
	}
}

// Each error names the URL, and the file where there is one; nothing is left under its name.
func TestLIFE2_AMirrorTakesNothingThatIsAltered(t *testing.T) {
	plain := httptest.NewServer(site{"/kubelet": "x"})
	defer plain.Close()
	kubelet := "/dl.k8s.io/v1.36.3/bin/linux/amd64/kubelet"
	for name, c := range map[string]struct {
		path, content string
		names         []string
	}{
		"an altered file":            {kubelet, "altered", []string{kubelet + ": from https://", kubelet + ": it has SHA-256 " + sum("altered")}},
		"a file that is elsewhere":   {kubelet, "moved to /nowhere", []string{kubelet + ": https://", kubelet + ": the server answers 404"}},
		"a redirect to http":         {kubelet, "moved to " + plain.URL + "/kubelet", []string{kubelet + ": Get", "which is not https"}},
		"a sum by http":              {kubelet + ".sha256", "moved to " + plain.URL + "/kubelet", []string{"https", "which is not https"}},
		"a sum that is none":         {kubelet + ".sha256", "<html>", []string{"https://", kubelet + ".sha256: has no SHA-256 of kubelet"}},
		"a list that lacks the file": {"/github.com/opencontainers/runc/releases/download/v1.4.3/runc.sha256sum", sum("x") + "  other\n", []string{"runc.sha256sum: has no SHA-256 of runc.amd64"}},
	} {
		t.Run(name, func(t *testing.T) {
			files, all := newSite()
			files[c.path] = c.content
			source, _ := newSource(t, files)
			folder := t.TempDir()
			_, err := source.Digests(t.Context(), all, folder)
			for _, want := range c.names {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want one with %q", err, want)
				}
			}
			if _, err := os.Stat(filepath.Join(folder, c.path)); err == nil {
				t.Error("it is in the mirror")
			}
			left, _ := filepath.Glob(filepath.Join(folder, filepath.Dir(c.path), ".part-*"))
			if len(left) > 0 {
				t.Errorf("left behind is %v", left)
			}
		})
	}
}

func TestLIFE2_SumsComeByHTTPSAlone(t *testing.T) {
	_, err := Source{Client: http.DefaultClient, Mirror: "http://user:secret@mirror.example.com"}.Digests(t.Context(),
		bootstrap.Artifacts(clusterv1alpha1.OperatingSystemFlatcar, "1.36.3"), "")
	if err == nil || !strings.Contains(err.Error(), "use https") || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}
