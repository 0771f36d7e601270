// Package attest writes what a consumer of images wants to know of where they come from: which
// modules are in them (SPDX), and which sources they were built from (SLSA provenance).
package attest

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// Subject is the executable of an image.
type Subject struct {
	// Name is the executable's, Version the release's.
	Name, Version string
	// Path is where its file is.
	Path string
	// Digest is that of its platform's image, as sha256:….
	Digest string
	// Created is the time that the document bears, so that it can be made again.
	Created time.Time
	// Namespace is an address under which no other document is.
	Namespace string
}

// SBOM is a document of SPDX 2.3 in JSON, with the modules that Go says it has linked.
// https://spdx.github.io/spdx-spec/v2.3/
func SBOM(s Subject) ([]byte, error) {
	info, err := buildinfo.ReadFile(s.Path)
	if err != nil {
		return nil, fmt.Errorf("modules of %s: %w", s.Path, err)
	}
	document := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      s.Name + " " + s.Version,
		DocumentNamespace: s.Namespace + "/" + s.Name + "/" + strings.ReplaceAll(s.Digest, ":", "-"),
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "millwright-release"}},
			Created:  s.Created.UTC().Format(time.RFC3339),
		},
	}
	image := &spdx.Package{
		PackageName: s.Name, PackageSPDXIdentifier: "Image", PackageVersion: s.Version, PrimaryPackagePurpose: "CONTAINER",
		PackageDownloadLocation: "NOASSERTION", PackageLicenseDeclared: "Apache-2.0",
		PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: strings.TrimPrefix(s.Digest, "sha256:")}},
	}
	document.Packages = append(document.Packages, image)
	document.Relationships = append(document.Relationships, relation("DOCUMENT", "DESCRIBES", "Image"))
	toolchain := &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}
	for i, module := range append([]*debug.Module{toolchain, &info.Main}, info.Deps...) {
		id := fmt.Sprintf("Module-%d", i)
		document.Packages = append(document.Packages, modulePackage(id, module, s.Version))
		document.Relationships = append(document.Relationships, relation("Image", "CONTAINS", common.ElementID(id)))
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// modulePackage tells of a module. Those of this repository have the release's version: Go knows
// none for what comes from the workspace.
func modulePackage(id string, m *debug.Module, release string) *spdx.Package {
	if m.Replace != nil {
		m = m.Replace
	}
	version := m.Version
	if version == "" || version == "(devel)" {
		version = release
	}
	return &spdx.Package{
		PackageName: m.Path, PackageSPDXIdentifier: common.ElementID(id), PackageVersion: version, PrimaryPackagePurpose: "LIBRARY",
		PackageDownloadLocation: "NOASSERTION",
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
			Locator: "pkg:golang/" + m.Path + "@" + version,
		}},
	}
}

func relation(from common.ElementID, kind string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(from)), RefB: common.MakeDocElementID("", string(to)), Relationship: kind,
	}
}
