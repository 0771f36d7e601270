package arena

import (
	"context"

	"github.com/millwright-dev/millwright/test/chaos/judge"
)

// history is what has happened since the last call. What etcd tells is read last: it explains the
// rest.
func (a *arena) history(ctx context.Context) (judge.History, error) {
	var h judge.History
	if err := a.record.complete(); err != nil {
		return h, err
	}
	if err := a.cloud.readLedger(ctx, &h); err != nil {
		return h, err
	}
	for _, log := range a.audits {
		requests, err := log.Next()
		if err != nil {
			return h, err
		}
		for _, e := range requests {
			h.Writes = append(h.Writes, judge.Write{At: e.Answered, User: e.User, Verb: e.Verb, Resource: e.Resource, Namespace: e.Namespace, Name: e.Name})
		}
	}
	var err error
	if h.Finds, err = a.finder.find(); err != nil {
		return h, err
	}
	h.Acts, h.Ends = a.record.take()
	h.Changes = a.view.take()
	return h, nil
}
