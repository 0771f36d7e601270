package vm

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/providers/qemu/spec"
)

// Record says whose a VM is and what was asked for. It holds no secrets.
type Record struct {
	ClusterUID string            `json:"clusterUID"`
	Namespace  string            `json:"namespace"`
	Name       string            `json:"name"`
	UID        string            `json:"uid"`
	Spec       spec.Machine      `json:"spec"`
	Tags       map[string]string `json:"tags,omitempty"`
	// Address is the VM's own on a bridge.
	Address netip.Addr `json:"address,omitzero"`
	Created time.Time  `json:"created"`
	// Deleting is when the VM was first asked to go.
	Deleting time.Time `json:"deleting,omitzero"`
}

// Store is the folder with the VMs of one host. It is safe for concurrent use, also by several
// processes.
type Store struct {
	dir    string
	hostID string
	// turn holds a token while a call of this process changes something.
	turn chan struct{}
}

// ErrBusy says that another process changes something in the folder.
var ErrBusy = errors.New("another driver uses the state directory")

// OpenStore opens the folder of a host's VMs, and gives the host its id at the first time. The
// folder is made if its parent is there: a disk that is not mounted must not look like a host
// without VMs.
func OpenStore(dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, turn: make(chan struct{}, 1)}
	for _, folder := range []string{dir, s.machines()} {
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	s.hostID, err = readHostID(filepath.Join(dir, "host-id"))
	return s, err
}

func (s *Store) machines() string { return filepath.Join(s.dir, "machines") }

// readHostID returns the id in a file, which it makes if there is none. Of two processes that make
// it at once, both return that of the first.
func readHostID(path string) (string, error) {
	id, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return strings.TrimSpace(string(id)), err
	}
	fresh := fmt.Sprintf("%s.%s", path, rand.Text())
	if err := writeFile(fresh, []byte(strings.ToLower(rand.Text()[:12])+"\n")); err != nil {
		return "", err
	}
	defer os.Remove(fresh) //nolint:errcheck // a file too many does no harm
	if err := os.Link(fresh, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return readHostID(path)
}

// HostID tells this host's VMs from those of another. It does not change.
func (s *Store) HostID() string { return s.hostID }

// Begin waits for the turn of a call that changes something, and returns how to end it. Calls of
// this process wait for one another until ctx ends; while another process has its turn, the error
// is ErrBusy.
func (s *Store) Begin(ctx context.Context) (end func(), err error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	held, err := acquire(filepath.Join(s.dir, "lock"))
	if err == nil && held == nil {
		err = ErrBusy
	}
	if err != nil {
		<-s.turn
		return nil, err
	}
	return func() { held.Close(); <-s.turn }, nil
}

// machineUID is what core sends. It names a folder.
var machineUID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,62}$`)

// IsUID says whether a folder can be named so.
func IsUID(uid string) bool { return machineUID.MatchString(uid) }

// Folder is that of a machine, whether it is there or not.
func (s *Store) Folder(uid string) Folder { return Folder(filepath.Join(s.machines(), uid)) }

// Records returns all of them, or an error: never one less than there are.
func (s *Store) Records() ([]*Record, error) {
	entries, err := os.ReadDir(s.machines())
	if err != nil {
		return nil, err
	}
	var all []*Record
	for _, entry := range entries {
		record, err := s.Folder(entry.Name()).Record()
		if err != nil {
			return nil, err
		}
		if record != nil { // else nothing was begun, or it went while we looked
			all = append(all, record)
		}
	}
	return all, nil
}

const recordFile = "record.json"

// Record returns that of the folder, nil when there is none.
func (f Folder) Record() (*Record, error) {
	raw, err := os.ReadFile(f.file(recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	record := &Record{}
	if err := json.Unmarshal(raw, record); err != nil {
		return nil, fmt.Errorf("%s: %w", f.file(recordFile), err)
	}
	return record, nil
}

// Write replaces a machine's record. Whoever reads it finds the old one or the new one.
func (f Folder) Write(record *Record) error {
	raw, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	fresh := f.file(recordFile + ".new")
	if err := writeFile(fresh, raw); err != nil {
		return err
	}
	return os.Rename(fresh, f.file(recordFile))
}

// Remove takes the folder away, the record last: by it is found what is left. The VM must not run.
func (f Folder) Remove() error {
	entries, err := os.ReadDir(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == recordFile {
			continue
		}
		if err := os.RemoveAll(f.file(entry.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(string(f))
}

// writeFile writes a file that only its owner can read, down to the disk.
func writeFile(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}
