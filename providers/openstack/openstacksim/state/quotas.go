package state

import (
	"maps"
)

// The kinds of resources, as quotas and hooks name them.
const (
	KindVM         = "vm"
	KindPort       = "port"
	KindFloatingIP = "floatingip"
	KindVolume     = "volume"
	KindTrunk      = "trunk"
)

// QuotaKinds are what the hooks can limit: the kinds of resources, and what servers take of hosts.
func QuotaKinds() []string {
	return []string{KindVM, KindPort, KindFloatingIP, KindVolume, "cores", "ram"}
}

// Unlimited is the limit of what has none.
const Unlimited = -1

// Quotas are how much projects may have.
type Quotas struct {
	journal *Journal
	// ofAll are what the hooks have set for each project, by kind.
	ofAll map[string]int64
	isSet bool // by a hook: then ofAll is part of the state
	// ofProject are what administrators have set, by project and kind.
	ofProject map[string]map[string]int64
}

// Begin sets what each project may have. Limits of the journal go before it.
func (q *Quotas) Begin(limits map[string]int64) { maps.Copy(q.ofAll, limits) }

// Limit is how many of a kind a project may have: what an administrator has set, else what the
// hooks have set for all, else any number. A negative one is none.
func (q *Quotas) Limit(project, kind string) int64 {
	if limit, set := q.ofProject[project][kind]; set {
		return limit
	}
	if limit, set := q.ofAll[kind]; set {
		return limit
	}
	return Unlimited
}

// IsSet says whether an administrator has limited a kind of a project.
func (q *Quotas) IsSet(project, kind string) bool {
	_, set := q.ofProject[project][kind]
	return set
}

// Exceeds says whether more than those that are used of a kind are too many.
func (q *Quotas) Exceeds(project, kind string, used, more int64) bool {
	limit := q.Limit(project, kind)
	return limit >= 0 && used+more > limit
}

// SetForAll sets what each project may have, as a hook asks for it. It outlives the cloud: from now
// on it is part of the state.
func (q *Quotas) SetForAll(limits map[string]int64) {
	maps.Copy(q.ofAll, limits)
	q.isSet = true
	q.journal.Save(func(e *Entry) { e.Quota = q.ofAll })
}

// Set sets what one project may have, as an administrator does.
func (q *Quotas) Set(project string, limits map[string]int64) {
	all := maps.Clone(q.ofProject[project])
	if all == nil {
		all = map[string]int64{}
	}
	maps.Copy(all, limits)
	q.ofProject[project] = all
	q.journal.Save(func(e *Entry) { e.ProjectQuotas = q.ofProject })
}

// Snapshot adds the quotas to an entry of the journal. They are shared, not copied.
func (q *Quotas) Snapshot(e *Entry) {
	e.ProjectQuotas = q.ofProject
	if q.isSet {
		e.Quota = q.ofAll
	}
}

// Restore takes in what an entry of the journal says of quotas.
func (q *Quotas) Restore(e *Entry) {
	if e.Quota != nil {
		q.ofAll, q.isSet = e.Quota, true
	}
	if e.ProjectQuotas != nil {
		q.ofProject = e.ProjectQuotas
	}
}

// LimitsOf reads those limits of a quota set, as Nova and Cinder have it, that the cloud has kinds
// for. kinds has them by their names in the set.
func LimitsOf(set map[string]any, kinds map[string]string) map[string]int64 {
	limits := map[string]int64{}
	for name, kind := range kinds {
		if limit, isNumber := set[name].(float64); isNumber {
			limits[kind] = int64(limit)
		}
	}
	return limits
}
