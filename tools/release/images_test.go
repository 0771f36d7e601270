package main

import (
	"archive/tar"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const revision = "0123456789abcdef0123456789abcdef01234567"

// executables builds this program, under the name of one of the images', for both platforms.
func executables(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, architecture := range []string{"amd64", "arm64"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(folder, "linux-"+architecture, "millwright-manager"), "./testdata/program")
		build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v: %s", err, out)
		}
	}
	return folder
}

// makeImages runs the command, and returns the folder that it wrote to.
func makeImages(t *testing.T, executables string, more ...string) string {
	t.Helper()
	out := t.TempDir()
	command := imagesCommand()
	command.SetArgs(append([]string{
		"millwright-manager", "--version", "v0.1.0", "--revision", revision, "--created", "1764000000", "--executables", executables, "--out", out,
	}, more...))
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out
}

func readIndex(t *testing.T, folder string) (v1.ImageIndex, *v1.IndexManifest) {
	t.Helper()
	all, err := layout.ImageIndexFromPath(filepath.Join(folder, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	return all, list
}

// An image runs an executable as nobody in particular, for each platform, and holds nothing else
// but certificates and two names.
func TestOPS13_AnImageHoldsOneExecutable(t *testing.T) {
	folder := makeImages(t, executables(t), "--registry", "registry.example.com/millwright")
	all, list := readIndex(t, folder)
	named := list.Manifests[0]
	if got := named.Annotations["io.containerd.image.name"]; got != "registry.example.com/millwright/millwright-manager:v0.1.0" {
		t.Errorf("it is called %q", got)
	}
	index, err := all.ImageIndex(named.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, part := range manifest.Manifests {
		platforms = append(platforms, part.Platform.String())
		img, err := index.Image(part.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/usr/local/bin/millwright-manager"}) {
			t.Errorf("%s runs %v as %s", part.Platform, config.Config.Entrypoint, config.Config.User)
		}
		if got := config.Config.Labels["org.opencontainers.image.revision"]; got != revision {
			t.Errorf("%s is of revision %q", part.Platform, got)
		}
		if config.Architecture != part.Platform.Architecture {
			t.Errorf("%s says that it is for %s", part.Platform, config.Architecture)
		}
		want := []string{"etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "usr/local/bin/millwright-manager"}
		if got := files(t, img); !slices.Equal(got, want) {
			t.Errorf("%s holds %v, want %v", part.Platform, got, want)
		}
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("it is for %v", platforms)
	}
}

// files lists what a container of the image would see. Certificates have to be some.
func files(t *testing.T, img v1.Image) []string {
	t.Helper()
	var found []string
	content := mutate.Extract(img)
	defer func() { _ = content.Close() }()
	archive := tar.NewReader(content)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			slices.Sort(found)
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		found = append(found, header.Name)
		if strings.HasSuffix(header.Name, ".crt") {
			text, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), "BEGIN CERTIFICATE"); n < 100 {
				t.Errorf("it trusts %d certificates", n)
			}
		}
	}
}

// The same executables make the same bytes, whenever.
func TestOPS13_ImagesCanBeMadeAgain(t *testing.T) {
	programs := executables(t)
	var sums [2]map[string]string
	for i := range sums {
		folder := makeImages(t, programs)
		sums[i] = map[string]string{}
		for _, name := range []string{"images.tar", "oci/index.json", "sbom/millwright-manager-linux-arm64.spdx.json", "provenance/millwright-manager.intoto.json"} {
			text, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			sums[i][name] = string(text)
		}
	}
	for name := range sums[0] {
		if sums[0][name] != sums[1][name] {
			t.Errorf("%s differs from one time to the next", name)
		}
	}
}

// What is said about an image is pushed with it, and names it by its digest.
func TestOPS13_PushedImagesBringTheirPapers(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo))))
	t.Cleanup(server.Close)
	prefix := strings.TrimPrefix(server.URL, "http://") + "/millwright"
	makeImages(t, executables(t), "--registry", prefix, "--push")

	tag, err := name.NewTag(prefix + "/millwright-manager:v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	var statement struct {
		PredicateType string
		Subject       []struct{ Digest map[string]string }
		Predicate     struct {
			BuildDefinition struct {
				ResolvedDependencies []struct{ Digest map[string]string }
			}
		}
	}
	read(t, tag, digest, &statement)
	if len(statement.Subject) != 1 || statement.Subject[0].Digest["sha256"] != digest.Hex {
		t.Errorf("the provenance is that of %v", statement.Subject)
	}
	if statement.PredicateType != "https://slsa.dev/provenance/v1" || statement.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != revision {
		t.Errorf("the provenance says %+v", statement)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range manifest.Manifests {
		var document struct {
			SPDXVersion string `json:"spdxVersion"`
			Packages    []struct{ Name, VersionInfo string }
		}
		read(t, tag, part.Digest, &document)
		has := func(module string) bool {
			return slices.ContainsFunc(document.Packages, func(p struct{ Name, VersionInfo string }) bool { return p.Name == module && p.VersionInfo != "" })
		}
		if document.SPDXVersion != "SPDX-2.3" || !has("stdlib") || !has("github.com/spf13/pflag") {
			t.Errorf("the SBOM of %s says %+v", part.Platform, document)
		}
	}
}

// read reads the one referrer of an image.
func read(t *testing.T, of name.Tag, digest v1.Hash, into any) {
	t.Helper()
	referrers, err := remote.Referrers(of.Digest(digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	list, err := referrers.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Manifests) != 1 {
		t.Fatalf("%s has %d referrers", digest, len(list.Manifests))
	}
	artifact, err := remote.Image(of.Digest(list.Manifests[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	layers, err := artifact.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	if err := json.NewDecoder(content).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// Wrong flags name what to change.
func TestOPS13_WrongFlagsAreNamed(t *testing.T) {
	for flags, want := range map[string]string{
		"millwright-manager --push":                  "--registry",
		"millwright-manager --platforms windows":     "windows/millwright-manager",
		"sawmill":                                    "sawmill",
		"millwright-manager --platforms linux/x/y/z": "--platforms",
	} {
		command := imagesCommand()
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetArgs(append([]string{"--version", "v0.1.0", "--revision", revision, "--created", "1", "--executables", t.TempDir(), "--out", t.TempDir()}, strings.Fields(flags)...))
		if err := command.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that names %s", flags, err, want)
		}
	}
}
