package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/millwright-dev/millwright/cmd/top"
	"github.com/millwright-dev/millwright/cmd/tree"
	"github.com/millwright-dev/millwright/core/driverstatus"
)

// Source is what the page shows. It has to be cheap: it is asked several times a second.
type Source interface {
	// Fleet returns the objects of the namespace, or of all.
	Fleet(context.Context) (tree.Fleet, error)
	// Events returns what was lately told of them; none if the person may not read events.
	Events(context.Context) ([]eventsv1.Event, error)
	// Drivers returns the drivers; none if the person may not read how they do.
	Drivers(context.Context) ([]driverstatus.Driver, error)
}

// mostEvents is how many events the page shows.
const mostEvents = 100

// view is all that the page shows at a moment.
type view struct {
	rows []row
	rest rest
}

// rest is what the page shows beside the rows.
type rest struct {
	Summary summary  `json:"summary"`
	Drivers []driver `json:"drivers"`
	Events  []told   `json:"events"`
}

type summary struct {
	Machines int            `json:"machines"`
	Phases   map[string]int `json:"phases"`
	Joins    float64        `json:"joinsPerMinute"`
	Leaves   float64        `json:"leavesPerMinute"`
}

type driver struct {
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Version string `json:"version,omitempty"`
	Why     string `json:"why,omitempty"`
}

// told is an Event.
type told struct {
	Time      time.Time `json:"time"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Warning   bool      `json:"warning,omitempty"`
	Reason    string    `json:"reason"`
	Note      string    `json:"note"`
	Count     int32     `json:"count"`
}

// viewer makes views. It remembers what rates are measured by.
type viewer struct {
	source  Source
	mu      sync.Mutex
	history top.History
}

func (v *viewer) view(ctx context.Context) (view, error) {
	fleet, err := v.source.Fleet(ctx)
	if err != nil {
		return view{}, err
	}
	events, err := v.source.Events(ctx)
	if err != nil {
		return view{}, err
	}
	drivers, err := v.source.Drivers(ctx)
	if err != nil {
		return view{}, err
	}
	v.mu.Lock()
	frame := v.history.Add(fleet, time.Now())
	v.mu.Unlock()
	paused := map[[2]string]bool{}
	for i := range fleet.Deployments {
		md := &fleet.Deployments[i]
		paused[[2]string{md.Namespace, md.Name}] = md.Spec.Paused
	}
	return view{
		rows: rowsOf(tree.Build(fleet), frame, func(namespace, name string) bool { return paused[[2]string{namespace, name}] }),
		rest: rest{
			Summary: summary{frame.Machines, frame.Phases, frame.Joins, frame.Leaves},
			Drivers: driversOf(drivers), Events: eventsOf(events),
		},
	}, nil
}

func driversOf(published []driverstatus.Driver) []driver {
	drivers := make([]driver, 0, len(published))
	for _, d := range published {
		drivers = append(drivers, driver{Name: d.Name, Ready: d.Ready, Version: d.Version, Why: d.Reason})
	}
	return drivers
}

// eventsOf returns the latest events, the last first.
func eventsOf(events []eventsv1.Event) []told {
	all := make([]told, 0, len(events))
	for i := range events {
		e := &events[i]
		t := told{
			Time: e.EventTime.Time, Kind: e.Regarding.Kind, Namespace: e.Namespace, Name: e.Regarding.Name,
			Warning: e.Type == "Warning", Reason: e.Reason, Note: e.Note, Count: 1,
		}
		if e.Series != nil {
			t.Time, t.Count = e.Series.LastObservedTime.Time, e.Series.Count
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b told) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Note, b.Note))
	})
	return all[:min(len(all), mostEvents)]
}

// delta is what has changed from one view to the next.
type delta struct {
	// Rows are those that are new or have changed, and Gone the ids of those that are not there any
	// more.
	Rows []row    `json:"rows,omitempty"`
	Gone []string `json:"gone,omitempty"`
	// Order are the ids of all rows in their order, if that has changed.
	Order []string `json:"order,omitempty"`
	Rest  *rest    `json:"rest,omitempty"`
}

// follower knows what a page shows.
type follower struct {
	rows  map[string]string
	order []string
	rest  string
}

// next returns what has changed since the last call; nil if nothing has.
func (f *follower) next(v view) *delta {
	var d delta
	rows, order := map[string]string{}, make([]string, 0, len(v.rows))
	for i := range v.rows {
		r := &v.rows[i]
		rows[r.ID] = encoded(r)
		order = append(order, r.ID)
		if rows[r.ID] != f.rows[r.ID] {
			d.Rows = append(d.Rows, *r)
		}
	}
	for id := range f.rows {
		if _, ok := rows[id]; !ok {
			d.Gone = append(d.Gone, id)
		}
	}
	slices.Sort(d.Gone)
	if !slices.Equal(order, f.order) {
		d.Order = order
	}
	all := encoded(v.rest)
	if all != f.rest {
		d.Rest = &v.rest
	}
	f.rows, f.order, f.rest = rows, order, all
	if len(d.Rows)+len(d.Gone)+len(d.Order) == 0 && d.Rest == nil {
		return nil
	}
	return &d
}

// encoded returns a value of this package's as JSON.
func encoded(value any) string {
	raw, _ := json.Marshal(value) // there is nothing in it that has no JSON
	return string(raw)
}
