// Package drain empties a Node, one pass at a time: it keeps new pods away, asks the API server to
// evict the pods there are, and says who is still there. Then it says which volumes are. Nothing
// waits; whoever calls comes back later.
//
// Which pods count:
//   - those of a DaemonSet, mirrors of static pods, and those that have ended are left alone: they
//     go with the Node;
//   - so are those that their controller would make again on this very Node: they tolerate the
//     taint of a cordoned one;
//   - so are those with the label cluster.x-k8s.io/drain: skip; with wait-completed they are
//     waited for and not evicted;
//   - all others are evicted, each when its PodDisruptionBudgets allow it. Those with the lowest
//     order go first, all at once: see orderOf;
//   - where it is asked for, those that use PersistentVolumeClaims are evicted one at a time: each
//     once the one before is gone and its volumes are detached. See evictNext;
//   - those that are terminating are waited for. Whoever calls decides when nobody is there any
//     more to end them.
//
// Two things block an eviction. PodDisruptionBudgets may forbid it for now (Progress.Blocked);
// those that will never allow it are named. Or the API server refuses it for another reason, as in
// a namespace that is terminating (Progress.Refused). core/lifecycle/drain.go shows both in the
// condition Drained, and ends a drain that takes too long.
//
// Once a drain is over, Drainer.Attached says which volumes are still attached to the Node: no
// other Node gets them before they are detached. Those of pods that are left alone do not count.
// They come from a cache of VolumeAttachments; pods and claims are read only where there are some.
//
// Pods are read from the API server with each pass, for this one Node. The API server answers from
// its cache, and once more for certain when nothing seems left.
package drain
