package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/tools/release/attest"
	"github.com/millwright-dev/millwright/tools/release/image"
)

// source is the repository's address, by which Go knows its modules.
const source = "https://github.com/millwright-dev/millwright"

// descriptions are those of the images there are, by the names of their executables.
var descriptions = map[string]string{
	"millwright-manager":          "Machine management for Kubernetes: turns MachineDeployments into Nodes, through drivers",
	"millwright-driver-openstack": "Millwright's driver of OpenStack",
	"millwright-driver-fake":      "Millwright's driver of a cloud that is not there, to try it with",
	"driver-conformance":          "Shows whether a driver keeps to Millwright's contract",
}

// imagesOptions are the flags of `images`.
type imagesOptions struct {
	release           image.Release
	unix              int64
	executables, out  string
	prefix            string
	push              bool
	platforms, images []string
}

func imagesCommand() *cobra.Command {
	o := imagesOptions{release: image.Release{Source: source}}
	command := &cobra.Command{
		Use:   "images NAME...",
		Short: "Make container images as an OCI layout and as one file, with SBOMs and provenance",
		Long: "Makes an image of each executable FOLDER/OS-ARCHITECTURE/NAME. --out gets the folder oci, an OCI layout; images.tar, the same as one file,\n" +
			"which `ctr images import` takes; and sbom and provenance, with what else the layout says of each image.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			o.images = names
			o.release.Created = time.Unix(o.unix, 0)
			return o.run(command.Context(), command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.release.Version, "version", "", "The release, such as v0.1.0: the tag of its images (required).")
	flags.StringVar(&o.release.Revision, "revision", "", "The commit that the executables were built from (required).")
	flags.Int64Var(&o.unix, "created", 0, "When that commit was made, in seconds since 1970 (required).")
	flags.StringVar(&o.executables, "executables", "", "The folder with a folder of executables for each platform (required).")
	flags.StringVar(&o.out, "out", "", "The folder to write to (required).")
	flags.StringSliceVar(&o.platforms, "platforms", []string{"linux/amd64", "linux/arm64"}, "What the images run on.")
	flags.StringVar(&o.prefix, "registry", "", "What stands before the images' names, such as registry.example.com/millwright.")
	flags.BoolVar(&o.push, "push", false, "Push them to --registry, with the credentials of `docker login`.")
	for _, required := range []string{"version", "revision", "created", "executables", "out"} {
		_ = command.MarkFlagRequired(required) // it was just defined
	}
	return command
}

func (o *imagesOptions) run(ctx context.Context, out io.Writer) error {
	if o.push && strings.HasSuffix(o.release.Revision, "-dirty") {
		return fmt.Errorf("--push: the tree has changes that are not committed (%s): nobody could make these images again", o.release.Revision)
	}
	if o.push && o.prefix == "" {
		return fmt.Errorf("--push: --registry says where to, such as --registry registry.example.com/millwright")
	}
	var published []image.Published
	for _, name := range o.images {
		p, err := o.build(name)
		if err != nil {
			return err
		}
		published = append(published, p)
	}
	layout := filepath.Join(o.out, "oci")
	if err := image.WriteLayout(layout, o.prefix, o.release.Version, published); err != nil {
		return err
	}
	if err := image.Archive(layout, filepath.Join(o.out, "images.tar")); err != nil {
		return err
	}
	for _, p := range published {
		reference := p.Reference(o.prefix, o.release.Version)
		if o.push {
			var err error
			if reference, err = image.Push(ctx, o.prefix, o.release.Version, p); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(out, reference); err != nil {
			return err
		}
	}
	return nil
}

// build makes one image and what is said about it, which it also leaves in files.
func (o *imagesOptions) build(name string) (image.Published, error) {
	description, ok := descriptions[name]
	if !ok {
		return image.Published{}, fmt.Errorf("%s: there is no such image", name)
	}
	var executables []image.Executable
	for _, text := range o.platforms {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return image.Published{}, fmt.Errorf("--platforms: %w", err)
		}
		executables = append(executables, image.Executable{
			Path: filepath.Join(o.executables, strings.ReplaceAll(text, "/", "-"), name), Platform: *platform,
		})
	}
	built, err := image.Build(o.release, name, description, executables)
	if err != nil {
		return image.Published{}, err
	}
	result := image.Published{Image: built}
	for _, part := range built.Parts {
		if err := o.addSBOM(&result, part); err != nil {
			return image.Published{}, fmt.Errorf("what is in %s: %w", name, err)
		}
	}
	if err := o.addProvenance(&result); err != nil {
		return image.Published{}, fmt.Errorf("where %s comes from: %w", name, err)
	}
	return result, nil
}

// addSBOM adds the SBOM of one platform's image.
func (o *imagesOptions) addSBOM(p *image.Published, part image.Part) error {
	digest, err := part.Image.Digest()
	if err != nil {
		return err
	}
	text, err := attest.SBOM(attest.Subject{
		Name: p.Name, Version: o.release.Version, Path: part.Path, Digest: digest.String(), Created: o.release.Created, Namespace: source + "/sbom",
	})
	if err != nil {
		return err
	}
	referrer, err := image.Referrer(part.Image, image.SPDX, text)
	if err != nil {
		return err
	}
	p.Referrers = append(p.Referrers, referrer)
	return o.write("sbom", p.Name+"-"+strings.ReplaceAll(part.Platform.String(), "/", "-")+".spdx.json", text)
}

// addProvenance adds the provenance of an image.
func (o *imagesOptions) addProvenance(p *image.Published) error {
	digest, err := p.Index.Digest()
	if err != nil {
		return err
	}
	program, err := buildinfo.ReadFile(p.Parts[0].Path)
	if err != nil {
		return err
	}
	text, err := attest.Provenance(attest.Build{
		Name: p.Reference(o.prefix, o.release.Version), Digest: digest.String(), Source: source, Revision: o.release.Revision,
		Version: o.release.Version, Go: program.GoVersion,
	})
	if err != nil {
		return err
	}
	referrer, err := image.Referrer(p.Index, image.InToto, text)
	if err != nil {
		return err
	}
	p.Referrers = append(p.Referrers, referrer)
	return o.write("provenance", p.Name+".intoto.json", text)
}

func (o *imagesOptions) write(folder, name string, text []byte) error {
	folder = filepath.Join(o.out, folder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name), text, 0o600)
}
