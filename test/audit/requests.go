package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"
)

// Request is one write that the API server has carried out. It has a body where the audit policy
// keeps bodies.
type Request struct {
	Write
	User string
	// URI is path and query.
	URI string
	// Group, Namespace and Name are the object's. The name of one that the API server named itself
	// is empty.
	Group, Namespace, Name string
	// Received and Answered are when the API server got the request, and when it was done with it.
	Received, Answered time.Time
	Body               json.RawMessage
}

// Log reads an audit log as it grows.
type Log struct {
	path   string
	offset int64
}

// NewLog returns a reader of the log at path, from its beginning.
func NewLog(path string) *Log { return &Log{path: path} }

// Next returns the writes that were carried out since the last call, in the order of their answers.
func (l *Log) Next() (requests []Request, err error) {
	file, err := os.Open(l.path)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("go on in the audit log: %w", err)
	}
	for e, err := range events(file) {
		if err != nil {
			return nil, err
		}
		l.offset += e.size
		if e.carriedOut() {
			requests = append(requests, e.request())
		}
	}
	return requests, nil
}

// event is as much of audit.k8s.io/v1 Event as is read.
type event struct {
	Verb                     string    `json:"verb"`
	Stage                    string    `json:"stage"`
	RequestURI               string    `json:"requestURI"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time `json:"stageTimestamp"`
	User                     struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestObject json.RawMessage `json:"requestObject"`
	// size is that of the line.
	size int64
}

// events yields the lines of a log. A last line that is not whole yet is left out. One that an API
// server left unfinished when it was killed yields an event of nothing.
func events(log io.Reader) iter.Seq2[*event, error] {
	return func(yield func(*event, error) bool) {
		lines := bufio.NewReader(log)
		for {
			line, err := lines.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("read the audit log: %w", err))
				return
			}
			e := &event{size: int64(len(line))}
			if err := json.Unmarshal(line, e); err != nil {
				if !bytes.HasPrefix(line, []byte("{")) {
					yield(nil, fmt.Errorf("read a line of the audit log: %w", err))
					return
				}
				e = &event{size: e.size}
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// carriedOut says whether the event is the end of a write that took effect.
func (e *event) carriedOut() bool { return e.writes() && e.ResponseStatus.Code < 300 }

// failed says whether the event is the end of a write that the API server answered with an error of
// its own.
func (e *event) failed() bool { return e.writes() && e.ResponseStatus.Code >= 500 }

// writes says whether the event is the end of a write.
func (e *event) writes() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return e.Stage == "ResponseComplete"
	}
	return false
}

func (e *event) write() Write {
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return Write{Verb: e.Verb, Resource: resource}
}

func (e *event) request() Request {
	return Request{
		Write: e.write(), User: e.User.Username, URI: e.RequestURI,
		Group: e.ObjectRef.APIGroup, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		Received: e.RequestReceivedTimestamp, Answered: e.StageTimestamp, Body: e.RequestObject,
	}
}
