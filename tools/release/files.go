package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/tools/release/pack"
)

// filesOptions are the flags of `files`.
type filesOptions struct {
	version, registry     string
	unix                  int64
	repository, out       string
	executables, kubectl  string
	platforms, executable []string
}

func filesCommand() *cobra.Command {
	var o filesOptions
	command := &cobra.Command{
		Use:   "files",
		Short: "Make the files of a release: archives of executables, chart, manifests, krew's manifest and checksums",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.run(command.Context(), command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.version, "version", "", "The release, such as v0.1.0 (required).")
	flags.StringVar(&o.registry, "registry", "", "Where its images are, such as registry.example.com/millwright (required).")
	flags.Int64Var(&o.unix, "created", 0, "When its commit was made, in seconds since 1970 (required).")
	flags.StringVar(&o.repository, "repository", ".", "The repository's folder.")
	flags.StringVar(&o.executables, "executables", "", "The folder with a folder of executables for each platform (required).")
	flags.StringVar(&o.kubectl, "kubectl", "kubectl", "What renders kustomizations.")
	flags.StringSliceVar(&o.platforms, "platforms", nil, "What the executables run on, such as linux/amd64 (required).")
	flags.StringSliceVar(&o.executable, "executable", nil, "The executables that are archived; the first is the plugin of kubectl (required).")
	flags.StringVar(&o.out, "out", "", "The folder to write to (required).")
	for _, required := range []string{"version", "registry", "created", "executables", "platforms", "executable", "out"} {
		_ = command.MarkFlagRequired(required) // it was just defined
	}
	return command
}

func (o *filesOptions) run(ctx context.Context, out io.Writer) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	at := time.Unix(o.unix, 0)
	files, plugins, err := o.archives(at)
	if err != nil {
		return err
	}
	chart, err := pack.Chart(filepath.Join(o.repository, "deploy", "charts", "millwright"), o.out, o.version, o.registry, at)
	if err != nil {
		return err
	}
	files = append(files, chart)
	for _, name := range []string{"crds", "openstack"} {
		manifest, err := o.kustomize(ctx, name)
		if err != nil {
			return err
		}
		files = append(files, manifest)
	}
	krew, err := pack.Krew(o.version, source, source+"/releases/download/"+o.version, plugins)
	if err != nil {
		return err
	}
	manifest := filepath.Join(o.out, "krew.yaml")
	if err := os.WriteFile(manifest, krew, 0o600); err != nil {
		return err
	}
	files = append(files, manifest)
	sums, err := pack.Checksums(files)
	if err != nil {
		return err
	}
	_, _ = out.Write(sums) // the same stands in the file
	return os.WriteFile(filepath.Join(o.out, "SHA256SUMS"), sums, 0o600)
}

// archives packs each executable for each platform, with the licence.
func (o *filesOptions) archives(at time.Time) (paths []string, plugins []pack.Plugin, err error) {
	licence, err := os.ReadFile(filepath.Join(o.repository, "LICENSE"))
	if err != nil {
		return nil, nil, err
	}
	for i, name := range o.executable {
		for _, platform := range o.platforms {
			file := name + pack.Suffix(platform)
			content, err := os.ReadFile(filepath.Join(o.executables, strings.ReplaceAll(platform, "/", "-"), file))
			if err != nil {
				return nil, nil, err
			}
			path := filepath.Join(o.out, fmt.Sprintf("%s-%s-%s.tar.gz", name, o.version, strings.ReplaceAll(platform, "/", "-")))
			files := []pack.File{{Name: "LICENSE", Content: licence}, {Name: file, Content: content, Executable: true}}
			if err := pack.Archive(path, files, at); err != nil {
				return nil, nil, err
			}
			paths = append(paths, path)
			if i == 0 {
				plugins = append(plugins, pack.Plugin{Platform: platform, Path: path})
			}
		}
	}
	return paths, plugins, nil
}

// kustomize renders a kustomization of deploy with the release's images.
func (o *filesOptions) kustomize(ctx context.Context, name string) (string, error) {
	overlay, err := os.MkdirTemp(o.out, "overlay")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(overlay) }()
	base, err := relative(overlay, filepath.Join(o.repository, "deploy", name))
	if err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [%s]\nimages:\n", base)
	for _, image := range slices.Sorted(maps.Keys(descriptions)) {
		fmt.Fprintf(&text, "- {name: %s, newName: %s/%s, newTag: %s}\n", image, o.registry, image, o.version)
	}
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text.String()), 0o600); err != nil {
		return "", err
	}
	render := exec.CommandContext(ctx, o.kubectl, "kustomize", overlay)
	render.Stderr = os.Stderr
	rendered, err := render.Output()
	if err != nil {
		return "", fmt.Errorf("render deploy/%s: %w", name, err)
	}
	path := filepath.Join(o.out, "millwright-"+name+".yaml")
	return path, os.WriteFile(path, rendered, 0o600)
}

// relative is the way from one folder to another: kustomize takes no absolute one.
func relative(from, to string) (string, error) {
	from, err := filepath.Abs(from)
	if err != nil {
		return "", err
	}
	if to, err = filepath.Abs(to); err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}
