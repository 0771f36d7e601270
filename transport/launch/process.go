package launch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
)

// Times that a process has.
const (
	// startTimeout is how long one may take until it serves.
	startTimeout = 30 * time.Second
	// endTimeout is how long one may take to end by itself once it has been asked to.
	endTimeout = 10 * time.Second
)

// Command is how a driver is started.
type Command struct {
	// Path is the executable's, absolute.
	Path string
	// Args follow it.
	Args []string
	// Env is the whole of its environment, as NAME=VALUE, but for what Start adds.
	Env []string
	// SHA256 is the checksum that the executable must have; nil: any.
	SHA256 []byte
}

// Process is a driver that was started, and everything that it has started itself.
type Process struct {
	// Address is where it serves, and TLS the only way in.
	Address net.Addr
	TLS     *tls.Config

	client *plugin.Client
	group  atomic.Pointer[group]
	// sockets is the folder that go-plugin has made for its socket.
	sockets atomic.Pointer[string]
}

// ErrEnded is what errors of Start wrap when the driver ended before it served.
var ErrEnded = errors.New("it ended before it served")

// Start starts a driver and returns when it serves. What it writes goes to log, a line at a time,
// and how it ends, if it does so by itself. The caller stops it. An error says why it does not
// serve, in words that stay the same while that lasts; nothing of it is left then.
func Start(ctx context.Context, c Command, log Log) (*Process, error) {
	if err := c.verify(); err != nil {
		return nil, fmt.Errorf("start the driver %s: %w", c.Path, err)
	}
	if err := writable(os.TempDir()); err != nil {
		return nil, err
	}
	p := &Process{}
	wrote := &output{log: log}
	config := &plugin.ClientConfig{
		HandshakeConfig:  Handshake,
		Plugins:          Plugins(),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     startTimeout,
		Stderr:           wrote,
		SyncStdout:       &output{log: log},
		SyncStderr:       &output{log: log},
		// What it would tell is told here.
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Off}),
		RunnerFunc: func(_ hclog.Logger, settings *exec.Cmd, sockets string) (runner.Runner, error) {
			p.sockets.Store(&sockets)
			g, err := newGroup(c, settings.Env, log.Logger)
			if err != nil {
				return nil, err
			}
			p.group.Store(g)
			// Whoever does not want it any more may have said so before there was something to
			// kill.
			return g, ctx.Err()
		},
	}
	p.client = plugin.NewClient(config)
	undo := context.AfterFunc(ctx, p.kill)
	defer undo()
	if err := p.serve(config, wrote); err != nil {
		p.Stop()
		return nil, fmt.Errorf("start the driver %s: %w", c.Path, err)
	}
	return p, nil
}

// serve returns when the driver serves, and what it writes to its standard files is read.
func (p *Process) serve(config *plugin.ClientConfig, wrote *output) error {
	address, err := p.client.Start()
	if err == nil {
		_, err = p.client.Client()
	}
	if err == nil {
		p.Address, p.TLS = address, config.TLSConfig
		return nil
	}
	g := p.group.Load()
	if g == nil || g.process.Load() == nil {
		return err
	}
	if g.endedByItself() {
		return fmt.Errorf("%w: %s; it wrote last: %s", ErrEnded, g.fate(), wrote.last())
	}
	// go-plugin repeats what the driver wrote.
	wrote.log.Warn("driver does not serve", "cause", wrote.log.clean(err.Error()))
	return errors.New("it runs, but does not serve: a driver that is started has to be served by the SDK, or to speak go-plugin's protocol on stdout")
}

// writable says whether files can be made in a folder, where go-plugin makes one for the socket.
func writable(dir string) error {
	probe, err := os.MkdirTemp(dir, "millwright")
	if err == nil {
		err = os.Remove(probe)
	}
	if why, ok := errors.AsType[*os.PathError](err); ok {
		// Its path is another one each time.
		err = why.Err
	}
	if err != nil {
		return fmt.Errorf("drivers that are started need a folder for their socket: set TMPDIR to one that can be written to; %s cannot: %w", dir, err)
	}
	return nil
}

// Process is the one that was started, for those who would signal it or look at it.
func (p *Process) Process() *os.Process { return p.group.Load().process.Load() }

// Stop ends the process, and whatever it has started: gracefully, and with force when that takes
// too long. It returns when all is over, and may be called more than once.
func (p *Process) Stop() {
	if g := p.group.Load(); g != nil {
		g.end()
	}
	p.client.Kill()
	// go-plugin leaves its folder behind where nothing was started.
	if sockets := p.sockets.Load(); sockets != nil && *sockets != "" {
		_ = os.RemoveAll(*sockets)
	}
}

func (p *Process) kill() {
	if g := p.group.Load(); g != nil {
		g.kill()
	}
}
