package apischema

import (
	"strings"
	"testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Sizes that the cluster-autoscaler could not read are refused when they are written, by their
// names. What was written before may be changed in other ways.
func TestAPI10_SizesOfTheAutoscalerAreIntegers(t *testing.T) {
	t.Parallel()
	const minimum, maximum = clusterv1alpha1.NodeGroupMinSizeAnnotation, clusterv1alpha1.NodeGroupMaxSizeAnnotation
	u := newUser(t)
	sized := func(annotations string) string {
		return edited(t, deploymentManifest, edit{"metadata.annotations", annotations})
	}
	applyCRDs(u)
	u.do("", "patch", "validatingadmissionpolicybinding", "millwright-autoscaler-sizes", "--type=merge", `--patch={"spec":{"validationActions":["Audit"]}}`)
	u.await("nobody refuses a wrong size", func() bool {
		_, _, err := u.try(sized(`{`+minimum+`: "3", `+maximum+`: "1"}`), "apply", "-f", "-")
		return err == nil
	})
	applyCRDs(u)
	u.await("the sizes are looked at", func() bool {
		_, _, err := u.try("", "annotate", "md/nodes", "--overwrite", maximum+"=two", "--dry-run=server")
		return err != nil
	})
	u.do("", "label", "md/nodes", "seen=yes")
	u.do("", "annotate", "md/nodes", "--overwrite", maximum+"=3")
	u.do("", "annotate", "md/nodes", maximum+"-", minimum+"-")
	for annotations, want := range map[string]string{
		`{` + minimum + `: "1.5", ` + maximum + `: "3"}`: minimum + ` has to be an integer`,
		`{` + minimum + `: "-1"}`:                        `and is "-1"`,
		`{` + maximum + `: ten}`:                         maximum + ` has to be an integer of 0 or more, such as "10", and is "ten"`,
		`{` + maximum + `: ""}`:                          `and is ""`,
		`{` + minimum + `: "9", ` + maximum + `: "3"}`:   `is 9, more than cluster-api-autoscaler-node-group-max-size, which is 3`,
	} {
		if _, stderr, err := u.try(sized(annotations), "apply", "-f", "-"); err == nil || !strings.Contains(stderr, want) {
			t.Errorf("%s: %v: %s: want it refused, with %q", annotations, err, stderr, want)
		}
	}
	for _, annotations := range []string{`{` + minimum + `: "0", ` + maximum + `: "0"}`, `{` + minimum + `: "5"}`, `{` + maximum + `: "100000"}`} {
		u.do(sized(annotations), "apply", "-f", "-")
	}
	if _, stderr, err := u.try("", "annotate", "md/nodes", "--overwrite", minimum+"=-5"); err == nil {
		t.Errorf("a wrong size by annotate: %s", stderr)
	}
}
