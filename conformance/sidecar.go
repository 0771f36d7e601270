package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/millwright-dev/millwright/transport"
)

// endpointVariable tells a driver where to serve that somebody else than core starts.
const endpointVariable = "MILLWRIGHT_ENDPOINT"

// sidecar is a process of the driver that is to serve on a unix socket.
type sidecar struct {
	t       *trial
	path    string
	command *exec.Cmd
	// ended is closed when the process has ended.
	ended chan struct{}
}

// startSidecar starts the driver as somebody else than core does. Its socket, always the same, and
// its temporary files lie in a folder. The caller kills it.
func startSidecar(ctx context.Context, t *trial, folder string) *sidecar {
	c := commandOf(t)
	keepIn(&c, folder)
	s := &sidecar{t: t, path: filepath.Join(folder, "driver.sock"), command: exec.CommandContext(ctx, c.Path, c.Args...), ended: make(chan struct{})}
	s.command.Env = append(c.Env, endpointVariable+"=unix://"+s.path)
	s.command.Stdout, s.command.Stderr, s.command.WaitDelay = t.wrote, t.wrote, time.Second
	if err := s.command.Start(); err != nil {
		t.fatalf("start the driver: %v", err)
	}
	go func() {
		defer close(s.ended)
		_ = s.command.Wait() // its state says how it ended
	}()
	return s
}

// kill ends the process at once: its socket stays behind.
func (s *sidecar) kill() {
	_ = s.command.Process.Kill() // it may have ended
	<-s.ended
}

// serves waits until the driver answers at its socket, up to limit. An error says why it does not.
func (s *sidecar) serves(ctx context.Context, limit time.Duration) error {
	way, err := transport.Parse("unix://"+s.path, transport.Options{Log: s.t.log})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	go func() {
		select {
		case <-s.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	own := *s.t.target
	own.driver, own.way = nil, way
	if err = own.reach(ctx); err == nil {
		_, err = own.handshake.GetPluginInfo(ctx, pluginInfoRequest())
		_ = own.driver.Close()
	}
	select {
	case <-s.ended:
		return fmt.Errorf("its process ended: %s", s.command.ProcessState)
	default:
		return err
	}
}

// firstSidecar starts a driver on a socket that is new. The check ends where it does not serve
// there.
func firstSidecar(ctx context.Context, t *trial, folder string) *sidecar {
	first := startSidecar(ctx, t, folder)
	if err := first.serves(ctx, comeBack); err != nil {
		first.kill()
		t.notRun("the driver does not serve on a unix socket that " + endpointVariable + " names: " + err.Error())
	}
	return first
}

func staleSocket(ctx context.Context, t *trial) {
	folder := t.folder()
	defer func() { _ = os.RemoveAll(folder) }()
	firstSidecar(ctx, t, folder).kill()
	next := startSidecar(ctx, t, folder)
	defer next.kill()
	if err := next.serves(ctx, comeBack); err != nil {
		t.errorf("where a driver that was killed has left its socket, the next one does not serve: %v", err)
	}
}

func liveSocket(ctx context.Context, t *trial) {
	folder := t.folder()
	defer func() { _ = os.RemoveAll(folder) }()
	first := firstSidecar(ctx, t, folder)
	defer first.kill()
	second := startSidecar(ctx, t, folder)
	defer second.kill()
	select {
	case <-second.ended:
		if second.command.ProcessState.Success() {
			t.errorf("started at a socket that another process serves it ended with 0, as if it had served")
		}
	case <-time.After(refusalLimit):
		t.errorf("started at a socket that another process serves it had not ended after %s", refusalLimit)
		second.kill()
	}
	if err := first.serves(ctx, refusalLimit); err != nil {
		t.errorf("started at a socket that another process serves it has taken that away: %v", err)
	}
}
