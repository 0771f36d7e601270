package conformance

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/millwright-dev/millwright/transport"
	"github.com/millwright-dev/millwright/transport/launch"
)

func execChecks() []Check {
	return []Check{
		{
			ID: "exec/handshake", Level: Should, Launch: true, run: execHandshake,
			Rule: "A driver that somebody else than core starts, without saying where to serve, says so and ends with an error.",
		},
		{
			ID: "exec/read-only-root", Level: Should, Launch: true, run: execReadOnlyRoot,
			Rule: "A driver that core starts needs to write nowhere but to TMPDIR, and to the folders that it was given.",
		},
		{
			ID: "exec/stale-socket", Level: Should, Launch: true, run: staleSocket,
			Rule: "A socket that a driver which was killed has left does not keep the next one from serving there.",
		},
		{
			ID: "exec/live-socket", Level: Should, Launch: true, run: liveSocket,
			Rule: "A driver that is to serve on a socket which another process serves ends with an error, and leaves the socket to that one.",
		},
	}
}

// commandOf is how the driver is started: as core starts it, which gives it the variables of
// proxies and CAs, too.
func commandOf(t *trial) launch.Command {
	command, err := transport.Command(t.config.Endpoint)
	if err != nil {
		t.fatalf("%v", err)
	}
	return command
}

// startAnother starts one more process of the driver, otherwise than the first, and has the check
// call that one until restore is called.
func (t *trial) startAnother(ctx context.Context, change func(*launch.Command)) (restore func()) {
	command := commandOf(t)
	change(&command)
	process, err := launch.Start(ctx, command, launch.Log{Logger: t.log})
	if err != nil {
		t.fatalf("%v", err)
	}
	first := t.session
	own := *first.target
	own.driver, own.way = nil, started{process}
	if err := own.reach(ctx); err != nil {
		process.Stop()
		t.fatalf("reach the driver: %v", err)
	}
	changed := *first
	changed.target = &own
	t.session = &changed
	return func() {
		t.session = first
		_ = own.driver.Close()
		process.Stop()
	}
}

// started is a process that serves already.
type started struct{ *launch.Process }

// Open implements transport.Transport.
func (s started) Open(ctx context.Context) (*transport.Wire, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, s.Address.Network(), s.Address.String())
	if err != nil {
		return nil, err
	}
	return &transport.Wire{Conn: conn, Credentials: credentials.NewTLS(s.TLS), Authority: "localhost", Process: s.Process.Process()}, nil
}

// refusalLimit is how long a driver may take to find out that it cannot serve.
const refusalLimit = 5 * time.Second

func execHandshake(ctx context.Context, t *trial) {
	ctx, cancel := context.WithTimeout(ctx, refusalLimit)
	defer cancel()
	c := commandOf(t)
	command := exec.CommandContext(ctx, c.Path, c.Args...)
	command.Env, command.WaitDelay = append([]string{}, c.Env...), time.Second
	wrote, err := command.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		t.errorf("started without core's handshake in its environment it had not ended after %s", refusalLimit)
	case err == nil:
		t.errorf("started without core's handshake in its environment it ended with 0, as if it had done something")
	case len(bytes.TrimSpace(wrote)) == 0:
		t.errorf("started without core's handshake in its environment it ended (%v) and did not say why", err)
	}
}

// readOnly is a shell script that starts the command after -- in its arguments. The command can
// write to three places alone: TMPDIR, the folder in which core wants the socket, and the folders
// before --. It takes a mount namespace of its own.
const readOnly = `set -e
set -- "$TMPDIR" "${PLUGIN_UNIX_SOCKET_DIR:-$TMPDIR}" "$@"
writable=:
while [ "$1" != -- ]; do
  mount --bind "$1" "$1"
  writable=$writable$1:
  shift
done
shift
while read -r _ _ _ _ at flags _; do
  case $at in /proc* | /sys* | /dev*) continue ;; esac
  case $writable in *:"$at":*) continue ;; esac
  mount -o "remount,bind,$flags,ro" "$at"
done <<END
$(cat /proc/self/mountinfo)
END
exec "$@"`

// confine has a command be started by readOnly, in namespaces that need no privileges where the
// system allows them. It may write to folder, its TMPDIR, and to more.
func confine(c *launch.Command, folder string, more []string) error {
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return err
	}
	keepIn(c, folder)
	c.Env = append([]string{"PATH=" + os.Getenv("PATH")}, c.Env...)
	args := append([]string{"--user", "--map-root-user", "--mount", "sh", "-c", readOnly, "sh"}, more...)
	c.Args = append(append(args, "--", c.Path), c.Args...)
	// The checksum is not that of unshare.
	c.Path, c.SHA256 = unshare, nil
	return nil
}

// writableFolders are the folders that the driver writes to, as mounts name them.
func (c Config) writableFolders() ([]string, error) {
	var folders []string
	for _, folder := range c.DriverFiles {
		path, err := filepath.Abs(folder)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return nil, fmt.Errorf("driverFiles: %w", err)
		}
		folders = append(folders, path)
	}
	return folders, nil
}

func execReadOnlyRoot(ctx context.Context, t *trial) {
	folder := t.folder()
	defer func() { _ = os.RemoveAll(folder) }()
	writable, err := t.config.writableFolders()
	if err != nil {
		t.fatalf("%v", err)
	}
	trivial := launch.Command{Path: "true"}
	if err := confine(&trivial, folder, writable); err != nil {
		t.notRun("this system cannot make its files read-only for one process: " + err.Error())
	}
	try := exec.CommandContext(ctx, trivial.Path, trivial.Args...)
	try.Env = trivial.Env
	if wrote, err := try.CombinedOutput(); err != nil {
		t.notRun("this system does not allow to make its files read-only for one process: " + string(bytes.TrimSpace(wrote)))
	}
	defer t.startAnother(ctx, func(c *launch.Command) { _ = confine(c, folder, writable) })() // it was possible
	m := t.machine()
	m.running(ctx)
	if _, err := m.get(ctx); err != nil {
		t.errorf("a status: %v", err)
	}
	m.gone(ctx)
}
