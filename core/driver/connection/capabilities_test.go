package connection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millwright-dev/millwright/core/driver/wire"
	handshakev1 "github.com/millwright-dev/millwright/proto/gen/millwright/handshake/v1"
)

// What a driver tells of itself is logged, so it is bounded.
func TestAManifestIsBounded(t *testing.T) {
	told := map[string]string{"commit": "abc\nlevel=ERROR " + strings.Repeat("x", 5000)}
	for n := range 2 * maxFacts {
		told[fmt.Sprintf("fact %02d", n)] = "v"
	}
	got := capabilitiesOf(&handshakev1.GetPluginInfoResponse{Manifest: told}, nil, Config{}).Manifest
	if len(got) != maxFacts || got["fact 00"] != "v" {
		t.Errorf("%d facts: %v", len(got), got)
	}
	if commit := got["commit"]; !strings.HasPrefix(commit, "abc") || strings.Contains(commit, "\n") || len(commit) > wire.MaxReason {
		t.Errorf("the commit is %q", commit)
	}
}
