package machinedeployment

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// maxHistory is how long, in bytes, the list of a set's former revisions may get. A Deployment of
// apps/v1 bounds its own likewise.
const maxHistory = 2000

// revision is the new set's: the highest of all, and no two sets have the same.
func (o *observation) revision() int64 {
	highest, own := int64(0), int64(0)
	for i := range o.sets {
		if &o.sets[i] == o.fresh {
			own = revisionOf(&o.sets[i])
			continue
		}
		highest = max(highest, revisionOf(&o.sets[i]))
	}
	if own > highest {
		return own
	}
	return highest + 1
}

// revise gives the set that revision, and keeps the one that it had in its history.
func revise(set *clusterv1alpha1.MachineSet, revision int64) {
	if had := revisionOf(set); had > 0 && had != revision {
		history := set.Annotations[clusterv1alpha1.RevisionHistoryAnnotation]
		if history != "" {
			history += ","
		}
		history += strconv.FormatInt(had, 10)
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, clusterv1alpha1.RevisionHistoryAnnotation, latest(history))
	}
	for _, key := range []string{clusterv1alpha1.RevisionAnnotation, clusterv1alpha1.AutoscalerRevisionAnnotation} {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, strconv.FormatInt(revision, 10))
	}
}

// latest is the history without its oldest revisions, if it has become too long.
func latest(history string) string {
	for len(history) > maxHistory {
		for history[0] != ',' {
			history = history[1:]
		}
		history = history[1:]
	}
	return history
}
