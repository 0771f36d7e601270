package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// journal is the file in which a run writes what it is about to make, one JSON object a line, and
// what is gone again. It holds no secret. It is safe for concurrent use.
type journal struct {
	file *os.File
}

// entry is a line of a journal.
type entry struct {
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid"`
	Gone      bool   `json:"gone,omitempty"`
}

func (e entry) ref() *driverv1alpha1.MachineRef {
	return &driverv1alpha1.MachineRef{Namespace: e.Namespace, Name: e.Name, Uid: e.UID}
}

func journalPath(state, runID string) string { return filepath.Join(state, runID+".jsonl") }

// openJournal begins, or goes on with, the journal of a run.
func openJournal(state, runID string) (*journal, error) {
	if runID == "" || strings.ContainsAny(runID, `/\`) {
		return nil, fmt.Errorf("run id: %q is none", runID)
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of journals: %w", err)
	}
	file, err := os.OpenFile(journalPath(state, runID), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	return &journal{file}, nil
}

// intend notes a machine before anybody is asked to make it.
func (j *journal) intend(cluster string, ref *driverv1alpha1.MachineRef) error {
	return j.add(entry{Cluster: cluster, Namespace: ref.GetNamespace(), Name: ref.GetName(), UID: ref.GetUid()})
}

// gone notes that nothing of a machine is left.
func (j *journal) gone(ref *driverv1alpha1.MachineRef) error {
	return j.add(entry{UID: ref.GetUid(), Gone: true})
}

func (j *journal) add(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	// One write, so that lines of concurrent checks do not mix; and it ends what a run that was
	// killed has left half.
	if _, err := fmt.Fprintf(j.file, "\n%s\n", line); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

func (j *journal) close() { _ = j.file.Close() }

// readJournal returns the machines of a run that may be left, in the order in which they were made.
func readJournal(state, runID string) ([]entry, error) {
	raw, err := os.ReadFile(journalPath(state, runID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no journal of the run %q in %s", runID, state)
	}
	if err != nil {
		return nil, err
	}
	var all []entry
	gone := map[string]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			// Empty, or the last line of a run that was killed: what it was about to say was not
			// done.
			continue
		}
		if gone[e.UID] = e.Gone; !e.Gone {
			all = append(all, e)
		}
	}
	var left []entry
	for _, e := range all {
		if !gone[e.UID] {
			left = append(left, e)
		}
	}
	return left, nil
}
