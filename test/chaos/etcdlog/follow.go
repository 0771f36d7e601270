package etcdlog

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change is a change of an object.
type Change struct {
	Revision int64
	// At is when it was seen, a moment after it happened.
	At time.Time
	// Object is as it is now, or was last. It is not to be changed.
	Object client.Object
	Gone   bool
}

// Log follows etcd. Make one with New.
type Log struct {
	url    string
	client *http.Client
	see    func(Change)
	// revision is the last one seen, and objects what there is, by key.
	revision int64
	objects  map[string]client.Object
}

// New returns a Log that tells see of each change since the beginning, in order, from one
// goroutine.
func New(url string, config *tls.Config, see func(Change)) *Log {
	return &Log{
		url: url + "/v3/watch", client: &http.Client{Transport: &http.Transport{TLSClientConfig: config}},
		see: see, objects: map[string]client.Object{},
	}
}

// prefix is where the API server keeps what it knows.
const prefix = "/registry/"

// pause lies between two attempts to reach etcd.
const pause = 50 * time.Millisecond

// ErrCompacted says that a part of the history is lost.
var ErrCompacted = errors.New("etcd has dropped changes before they were read")

// Follow follows until ctx ends, and through every absence of etcd. It returns an error when the
// history has a gap, or cannot be read.
func (l *Log) Follow(ctx context.Context) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		var broken *brokenError
		if err := l.watch(ctx); ctx.Err() == nil && !errors.As(err, &broken) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// brokenError is the end of a connection: another one goes on.
type brokenError struct{ error }

// The answers of etcd's JSON gateway: 64-bit numbers are strings, bytes are base64.
type answer struct {
	Result struct {
		Canceled        bool    `json:"canceled"`
		CompactRevision string  `json:"compact_revision"`
		Events          []event `json:"events"`
	} `json:"result"`
	Error json.RawMessage `json:"error"`
}

type event struct {
	// Type is DELETE, or absent.
	Type string `json:"type"`
	KV   struct {
		Key         []byte `json:"key"`
		Value       []byte `json:"value"`
		ModRevision string `json:"mod_revision"`
	} `json:"kv"`
}

type watchRequest struct {
	Create struct {
		Key           []byte `json:"key"`
		RangeEnd      []byte `json:"range_end"`
		StartRevision string `json:"start_revision"`
	} `json:"create_request"`
}

func (l *Log) watch(ctx context.Context) error {
	var r watchRequest
	r.Create.Key, r.Create.RangeEnd = []byte(prefix), []byte("/registry0") // "0" is the byte after "/".
	r.Create.StartRevision = strconv.FormatInt(l.revision+1, 10)
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the request for etcd's history: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask for etcd's history: %w", err)
	}
	response, err := l.client.Do(request)
	if err != nil {
		return &brokenError{err}
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return &brokenError{fmt.Errorf("etcd answers %s", response.Status)}
	}
	for answers := json.NewDecoder(response.Body); ; {
		var a answer
		if err := answers.Decode(&a); err != nil {
			return &brokenError{err}
		}
		if len(a.Error) > 0 {
			return &brokenError{fmt.Errorf("etcd ends the watch: %s", a.Error)}
		}
		if a.Result.CompactRevision != "" && a.Result.CompactRevision != "0" {
			return ErrCompacted
		}
		if a.Result.Canceled {
			return &brokenError{errors.New("etcd ends the watch")}
		}
		if err := l.take(a.Result.Events); err != nil {
			return err
		}
	}
}

// take takes in what has changed.
func (l *Log) take(events []event) error {
	now := time.Now()
	for _, e := range events {
		revision, err := strconv.ParseInt(e.KV.ModRevision, 10, 64)
		if err != nil {
			return fmt.Errorf("read a revision: %w", err)
		}
		l.revision = max(l.revision, revision)
		key := string(e.KV.Key)
		c := Change{Revision: revision, At: now, Object: l.objects[key], Gone: e.Type == "DELETE"}
		if c.Gone {
			delete(l.objects, key)
		} else if c.Object, err = decode(key, e.KV.Value); err != nil {
			return fmt.Errorf("read %s at revision %d: %w", key, revision, err)
		}
		if c.Object == nil {
			continue
		}
		if !c.Gone {
			l.objects[key] = c.Object
		}
		l.see(c)
	}
	return nil
}
