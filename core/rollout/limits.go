package rollout

// Amount is a number of machines, or a percentage of a deployment's replicas.
type Amount struct {
	Value   int32
	Percent bool
}

// Limits are resolved amounts.
type Limits struct {
	// MaxSurge is how many machines there may be beyond replicas.
	MaxSurge int32
	// MaxUnavailable is how many of replicas may be unavailable.
	MaxUnavailable int32
}

// Resolve turns the amounts of a spec into numbers for a deployment of that many replicas. A
// percentage of surge is rounded up, one of unavailable machines down, and if both come to 0, one
// machine may be unavailable, for otherwise nothing could ever be replaced. No more machines can be
// unavailable than there are. This is how Deployments of apps/v1 read the same fields
// (k8s.io/kubernetes/pkg/controller/deployment/util, ResolveFenceposts and MaxUnavailable).
// Negative numbers count as 0.
func Resolve(replicas int32, surge, unavailable Amount) Limits {
	l := Limits{
		MaxSurge:       surge.of(replicas, 99),
		MaxUnavailable: unavailable.of(replicas, 0),
	}
	if l.MaxSurge == 0 && l.MaxUnavailable == 0 {
		l.MaxUnavailable = 1
	}
	l.MaxUnavailable = min(l.MaxUnavailable, max(replicas, 0))
	return l
}

// of resolves a; a percentage is rounded after round hundredths have been added.
func (a Amount) of(replicas, round int32) int32 {
	if a.Percent {
		// Replicas are at most 100,000 and percentages 9,999: the result is an int32.
		return max(int32((int64(a.Value)*int64(replicas)+int64(round))/100), 0)
	}
	return max(a.Value, 0)
}
