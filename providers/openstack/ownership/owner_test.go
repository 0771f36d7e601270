package ownership

import (
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var plain = Owner{
	Cluster: "1fb25c0a-9ef1-4f0e-93d5-9d3f6b1f3c7e", Namespace: "kube-system", Name: "nodes-7d9f4-x2k8q", UID: "0c9a4e0e-7b0e-4d4c-8a51-6f4e9d2b7a11",
}

// longest is the longest owner there can be.
var longest = Owner{
	Cluster: strings.Repeat("c", 253), Namespace: strings.Repeat("n", 63), Name: strings.Repeat("m", 253), UID: strings.Repeat("u", 63),
}

func TestMarksTellTheOwner(t *testing.T) {
	if got, ok := FromMetadata(plain.Metadata()); !ok || got != plain {
		t.Errorf("by metadata: %+v", got)
	}
	if got, ok := FromPort(plain.Cluster, plain.PortName(), ClusterDescription(plain.Cluster)); !ok || got != plain {
		t.Errorf("by port: %+v", got)
	}
	uidAlone := Owner{Cluster: plain.Cluster, Namespace: plain.UID, Name: plain.UID, UID: plain.UID}
	if got, ok := FromDescription(plain.Cluster, plain.Description()); !ok || got != uidAlone {
		t.Errorf("by description: %+v", got)
	}
}

// A leftover that tells its uid alone is found again under what it is listed as.
func TestLeftoversAreFoundAgain(t *testing.T) {
	listed, ok := FromPort(longest.Cluster, longest.PortName(), ClusterDescription(longest.Cluster))
	if !ok || listed.PortName() != longest.PortName() {
		t.Errorf("the port %q is listed as %+v, whose port is %q", longest.PortName(), listed, listed.PortName())
	}
	listed, ok = FromDescription(plain.Cluster, plain.Description())
	if !ok || listed.Description() != plain.Description() {
		t.Errorf("the floating IP %q is listed as %+v", plain.Description(), listed)
	}
}

func TestOthersAreNotOurs(t *testing.T) {
	other := "2ab25c0a-9ef1-4f0e-93d5-9d3f6b1f3c7e"
	for name, ours := range map[string]bool{
		"a port of another cluster":          second(FromPort(other, plain.PortName(), ClusterDescription(plain.Cluster))),
		"a port that somebody named":         second(FromPort(plain.Cluster, "my port", ClusterDescription(plain.Cluster))),
		"a port without a uid":               second(FromPort(plain.Cluster, "a/b/", ClusterDescription(plain.Cluster))),
		"a floating IP of another cluster":   second(FromDescription(other, plain.Description())),
		"a floating IP that somebody made":   second(FromDescription(plain.Cluster, "for the web")),
		"a server without metadata":          second(FromMetadata(nil)),
		"a server with half of the metadata": second(FromMetadata(map[string]string{Cluster: "c", Machine: "u"})),
	} {
		if ours {
			t.Errorf("%s counts as the cluster's", name)
		}
	}
}

func second(_ Owner, ours bool) bool { return ours }

func TestWhatTheAPIsTake(t *testing.T) {
	for _, o := range []Owner{plain, longest} {
		for what, text := range map[string]string{"description": o.Description(), "port's name": o.PortName(), "port's description": ClusterDescription(o.Cluster)} {
			if len(text) > maxText {
				t.Errorf("%s: %d characters", what, len(text))
			}
		}
		for _, tag := range []string{ClusterTag(o.Cluster), MachineTag(o.UID)} {
			if len(tag) > maxTag || strings.ContainsAny(tag, "/,") {
				t.Errorf("tag %q", tag)
			}
		}
	}
	if got, want := ClusterTag(plain.Cluster), "millwright-cluster="+plain.Cluster; got != want {
		t.Errorf("tag %q, want %q: people look for it", got, want)
	}
	if strings.ContainsAny(ClusterTag("a/b,c"), "/,") {
		t.Error("a tag holds what Nova refuses")
	}
}

// The address must not change: a driver of another version would make a second port.
func TestMAC(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range []Owner{plain, longest, {Cluster: plain.Cluster, UID: "another"}, {Cluster: "another", UID: plain.UID}} {
		for index := range 8 {
			mac := o.MAC(index)
			address, err := net.ParseMAC(mac)
			if err != nil || address[0]&1 != 0 || address[0]&2 == 0 {
				t.Errorf("%s is no locally administered address of one interface (%v)", mac, err)
			}
			if seen[mac] {
				t.Errorf("%s: seen before", mac)
			}
			seen[mac] = true
		}
	}
	renamed := plain
	renamed.Name, renamed.Namespace = "other", "other"
	if diff := cmp.Diff(plain.MAC(0), renamed.MAC(0)); diff != "" {
		t.Errorf("the address follows the name, too: %s", diff)
	}
	if plain.MAC(0) != goldenMAC {
		t.Errorf("the address was %s, and is %s", goldenMAC, plain.MAC(0))
	}
}

// goldenMAC is the first address of the plain owner, for ever.
const goldenMAC = "2e:b0:56:12:a5:6a"
