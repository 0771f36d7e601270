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
	fresh := []byte(strings.ToLower(rand.Text()[:12]) + "\n")
	if err := writeFile(path, fresh, os.Link); err != nil && !errors.Is(err, fs.ErrExist) {
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

// VM is what a folder says of its VM.
type VM struct {
	Folder
	// Record is nil where nothing was begun.
	*Record

	Phase Phase
}

// VM looks at a machine's folder, whether it is there or not.
func (s *Store) VM(uid string) (VM, error) {
	v := VM{Folder: s.Folder(uid)}
	raw, err := os.ReadFile(v.file(recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(raw, &v.Record); err != nil {
		return v, fmt.Errorf("%s: %w", v.file(recordFile), err)
	}
	v.Phase, err = v.Folder.Phase()
	return v, err
}

// VMs returns all that were begun, or an error: never one less than there are.
func (s *Store) VMs() ([]VM, error) {
	entries, err := os.ReadDir(s.machines())
	if err != nil {
		return nil, err
	}
	var all []VM
	for _, entry := range entries {
		v, err := s.VM(entry.Name())
		if err != nil {
			return nil, err
		}
		if v.Record != nil { // else nothing was begun, or it went while we looked
			all = append(all, v)
		}
	}
	return all, nil
}

// Write replaces a machine's record. Whoever reads it finds the old one or the new one.
func (f Folder) Write(record *Record) error {
	raw, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(f.file(recordFile), raw, os.Rename)
}

// writeFile writes a file that only its owner can read, down to the disk. Only then it is put where
// it belongs: by os.Rename, or by os.Link where it must not replace another.
func writeFile(path string, content []byte, put func(from, to string) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // it was renamed, or a file too many does no harm
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return put(file.Name(), path)
}
