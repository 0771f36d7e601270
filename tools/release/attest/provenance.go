package attest

import (
	"bytes"
	"encoding/json"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// predicateType is that of SLSA's provenance. https://slsa.dev/spec/v1.0/provenance
const predicateType = "https://slsa.dev/provenance/v1"

// Build says what was built, and from what.
type Build struct {
	// Name and Digest are the image's: its reference, and sha256:… of its index.
	Name, Digest string
	// Source is the repository's address, Revision its commit.
	Source, Revision string
	// Version is the release's.
	Version string
	// Go is the version of the compiler, such as go1.26.0.
	Go string
}

// Provenance is an in-toto statement with SLSA's provenance in JSON. It is not signed: whoever
// publishes the images signs it with a key of theirs.
func Provenance(b Build) ([]byte, error) {
	parameters, err := structpb.NewStruct(map[string]any{"version": b.Version, "target": "images"})
	if err != nil {
		return nil, err
	}
	predicate := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType:          b.Source + "/blob/main/tools/release",
			ExternalParameters: parameters,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				{Uri: "git+" + b.Source + "@" + b.Revision, Digest: map[string]string{"gitCommit": b.Revision}},
				{Name: "go", Uri: "pkg:golang/toolchain@" + strings.TrimPrefix(b.Go, "go")},
			},
		},
		RunDetails: &provenance.RunDetails{
			Builder: &provenance.Builder{Id: b.Source + "/blob/main/Makefile"},
		},
	}
	raw, err := protojson.Marshal(predicate)
	if err != nil {
		return nil, err
	}
	inner := &structpb.Struct{}
	if err := protojson.Unmarshal(raw, inner); err != nil {
		return nil, err
	}
	statement := &intoto.Statement{
		Type:          intoto.StatementTypeUri,
		Subject:       []*intoto.ResourceDescriptor{{Name: b.Name, Digest: map[string]string{"sha256": strings.TrimPrefix(b.Digest, "sha256:")}}},
		PredicateType: predicateType,
		Predicate:     inner,
	}
	if raw, err = protojson.Marshal(statement); err != nil {
		return nil, err
	}
	// protojson varies its spaces on purpose.
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, err
	}
	return append(out.Bytes(), '\n'), nil
}
