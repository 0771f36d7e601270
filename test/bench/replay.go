package bench

import (
	"bytes"
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/millwright-dev/millwright/test/audit"
)

// writers is how many writes of the floor are under way at once.
const writers = 32

// replay writes once more what was written, without waiting for anything but the write before to
// the same object.
type replay struct {
	client *http.Client
	server string
	log    *slog.Logger
	// objects are those that were written to, by what identifies them in the log.
	objects map[string]*object
	refused int
}

// object is an object of the floor, as its last write left it.
type object struct {
	// created says that it is the floor's own: then it lies in the floor's namespace.
	created bool
	meta    metav1.ObjectMeta
	// pending are its writes that are not made yet, the next one first.
	pending []*write
}

func newReplay(config *rest.Config, log *slog.Logger) (*replay, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	return &replay{client: client, server: config.Host, log: log, objects: map[string]*object{}}, nil
}

// write makes the writes, as many at once as may be, and returns how long that took. Encoding them
// takes no time of that.
func (r *replay) write(ctx context.Context, requests []audit.Request) (time.Duration, error) {
	q := queue{}
	// The log has them in the order of their answers, and a watch may be quicker than the answer.
	requests = slices.SortedStableFunc(slices.Values(requests), func(a, b audit.Request) int { return begun(a).Compare(begun(b)) })
	for i := range requests {
		w, err := r.prepare(ctx, &requests[i])
		if err != nil {
			return 0, err
		}
		if w == nil {
			continue
		}
		w.turn = i
		if len(w.of.pending) == 0 {
			q = append(q, w)
		}
		w.of.pending = append(w.of.pending, w)
	}
	heap.Init(&q)
	began := time.Now()
	r.drain(ctx, &q)
	return time.Since(began), ctx.Err()
}

// begun is when the write can have taken effect: not before it was received. A deletion that came
// together with other writes came after them, since they did not fail.
func begun(w audit.Request) time.Time {
	if w.Verb == "delete" {
		return w.Answered
	}
	return w.Received
}

// drain makes all writes of the queue, and those that follow them.
func (r *replay) drain(ctx context.Context, q *queue) {
	var mu sync.Mutex
	free := sync.NewCond(&mu)
	underWay := 0
	next := func() *write {
		mu.Lock()
		defer mu.Unlock()
		for q.Len() == 0 && underWay > 0 {
			free.Wait()
		}
		if q.Len() == 0 {
			return nil
		}
		underWay++
		return heap.Pop(q).(*write) //nolint:forcetypeassert // nothing else is pushed
	}
	ended := func(w *write, err error) {
		mu.Lock()
		defer mu.Unlock()
		underWay--
		if err != nil {
			if r.refused++; r.refused <= 5 {
				r.log.Warn("A write of the floor was refused", "method", w.method, "path", w.path, "error", err)
			}
		}
		if w.of.pending = w.of.pending[1:]; len(w.of.pending) > 0 && ctx.Err() == nil {
			heap.Push(q, w.of.pending[0])
		}
		free.Broadcast()
	}
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for w := next(); w != nil; w = next() {
				ended(w, r.send(ctx, w))
			}
		})
	}
	all.Wait()
}

// send makes one write, and notes what it made of the object.
func (r *replay) send(ctx context.Context, w *write) error {
	body := w.body
	if w.marked {
		body = bytes.ReplaceAll(body, []byte(versionMark), []byte(w.of.meta.ResourceVersion))
		body = bytes.ReplaceAll(body, []byte(uidMark), []byte(w.of.meta.UID))
	}
	answer, err := r.do(ctx, w, body)
	if err != nil {
		return err
	}
	meta, err := metaOf(answer)
	if err != nil {
		return err
	}
	if meta.ResourceVersion != "" {
		w.of.meta.ResourceVersion, w.of.meta.UID = meta.ResourceVersion, meta.UID
	}
	return nil
}

func (r *replay) do(ctx context.Context, w *write, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, w.method, r.server+w.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", w.contentType)
	request.Header.Set("Accept", w.accept)
	answer, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s: %s", answer.Status, text[:min(len(text), 500)])
	}
	return text, nil
}

// protobufMagic is how protobuf answers of an API server begin.
var protobufMagic = []byte("k8s\x00")

// metaOf reads the metadata of an answer, be it protobuf or JSON. Metadata is field 1 of every
// kind.
func metaOf(answer []byte) (metav1.ObjectMeta, error) {
	var found metav1.PartialObjectMetadata
	raw, isProtobuf := bytes.CutPrefix(answer, protobufMagic)
	if !isProtobuf {
		err := json.Unmarshal(answer, &found)
		return found.ObjectMeta, err
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(raw); err != nil {
		return metav1.ObjectMeta{}, err
	}
	if envelope.Kind == "Status" {
		return metav1.ObjectMeta{}, nil
	}
	err := found.Unmarshal(envelope.Raw)
	return found.ObjectMeta, err
}

// queue holds writes that may be made now, those that were made first in front.
type queue []*write

func (q *queue) Len() int           { return len(*q) }
func (q *queue) Less(i, j int) bool { return (*q)[i].turn < (*q)[j].turn }
func (q *queue) Swap(i, j int)      { (*q)[i], (*q)[j] = (*q)[j], (*q)[i] }

// Push implements heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(*write)) } //nolint:forcetypeassert // nothing else is pushed

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
