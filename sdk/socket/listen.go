package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/millwright-dev/millwright/transport"
)

const (
	mode = 0o660
	// A socket is made under this suffix and renamed when its mode is right; MaxSocketPath leaves
	// room for it.
	suffixNew = ".new"
	// suffixLock names the file whose lock says that the socket is served.
	suffixLock = ".lock"
	// dialTimeout bounds the attempt to reach a process that serves the path without our lock.
	dialTimeout = time.Second
)

// ErrInUse is what Listen returns for a socket that another process serves.
var ErrInUse = errors.New("another process serves this socket")

// Path returns the path of an endpoint, which has to be unix:///absolute/path.
func Path(endpoint string) (string, error) {
	path, ok := strings.CutPrefix(endpoint, "unix://")
	if !ok && !strings.HasPrefix(endpoint, "unix:") && !strings.HasPrefix(endpoint, "/") {
		return "", fmt.Errorf("endpoint %q: only a unix socket is served, plaintext TCP is refused because requests hold "+
			"credentials: set --endpoint to unix:///absolute/path", endpoint)
	}
	if !ok || !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("endpoint %q: set --endpoint to unix:///absolute/path, with three slashes", endpoint)
	}
	if len(path) > transport.MaxSocketPath {
		return "", fmt.Errorf("endpoint %q: its path has %d bytes, at most %d are possible: choose a shorter one", endpoint, len(path), transport.MaxSocketPath)
	}
	return path, nil
}

// Listen listens on an endpoint. A socket that a process left behind is taken over. One that is
// served is refused with ErrInUse, and so is a path that holds anything else than a socket. Closing
// the listener removes the socket.
func Listen(endpoint string) (net.Listener, error) {
	path, err := Path(endpoint)
	if err != nil {
		return nil, err
	}
	lock, err := acquire(path + suffixLock)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", endpoint, err)
	}
	listener, err := listen(path)
	if err != nil {
		lock.release()
		return nil, fmt.Errorf("listen on %s: %w", endpoint, err)
	}
	made, err := os.Lstat(path)
	if err != nil {
		err = errors.Join(err, listener.Close())
		lock.release()
		return nil, fmt.Errorf("listen on %s: %w", endpoint, err)
	}
	return &owned{UnixListener: listener, path: path, made: made, lock: lock}, nil
}

// listen makes the socket at path. The caller holds the lock.
func listen(path string) (*net.UnixListener, error) {
	if err := checkDead(path); err != nil {
		return nil, err
	}
	if err := os.Remove(path + suffixNew); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path + suffixNew, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// It will have another name.
	listener.SetUnlinkOnClose(false)
	err = os.Chmod(path+suffixNew, mode)
	if err == nil {
		err = os.Rename(path+suffixNew, path)
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close(), os.Remove(path+suffixNew))
	}
	return listener, nil
}

// checkDead returns an error unless path is free or holds a socket that nobody serves.
func checkDead(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("the path holds something that is not a socket")
	}
	// Who serves it may know nothing of our lock.
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return errors.Join(ErrInUse, conn.Close())
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.EAGAIN):
		// Its queue is full: somebody is very much alive.
		return ErrInUse
	}
	return fmt.Errorf("find out whether another process serves it: %w", err)
}

// owned is a listener whose socket and lock go with it.
type owned struct {
	*net.UnixListener
	path string
	made fs.FileInfo
	lock *lock
}

// Close stops listening and removes the socket, unless another one has taken its place. Connections
// that were accepted live on.
func (o *owned) Close() error {
	if err := o.UnixListener.Close(); err != nil {
		return err
	}
	defer o.lock.release()
	found, err := os.Lstat(o.path)
	if err == nil && os.SameFile(found, o.made) {
		err = os.Remove(o.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
