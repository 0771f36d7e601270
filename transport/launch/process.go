package launch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
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
}

// ErrEnded is what errors of Start wrap when the driver ended before it served.
var ErrEnded = errors.New("it ended before it served")

// Start starts a driver and returns when it serves. What it writes goes to log, a line at a time. The caller stops it. An error says
// why it does not serve; nothing of it is left then.
func Start(ctx context.Context, c Command, log *slog.Logger) (*Process, error) {
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
		RunnerFunc: func(_ hclog.Logger, settings *exec.Cmd, _ string) (runner.Runner, error) {
			g, err := newGroup(c, settings.Env)
			if err != nil {
				return nil, err
			}
			p.group.Store(g)
			// Whoever does not want it any more may have said so before there was something to kill.
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
	if _, err := os.Stat(os.TempDir()); err != nil {
		return fmt.Errorf("set TMPDIR to a folder that can be written to: %w", err)
	}
	address, err := p.client.Start()
	if err == nil {
		_, err = p.client.Client()
	}
	if err == nil {
		p.Address, p.TLS = address, config.TLSConfig
		return nil
	}
	if g := p.group.Load(); g != nil && g.endedByItself() {
		return fmt.Errorf("%w: %s; it wrote last: %s", ErrEnded, g.fate(), wrote.last())
	}
	return err
}

// Process is the one that was started, for those who would signal it or look at it.
func (p *Process) Process() *os.Process { return p.group.Load().process.Load() }

// Stop ends the process, and whatever it has started: gracefully, and with force when that takes too long. It returns when all is
// over, and may be called more than once.
func (p *Process) Stop() {
	if g := p.group.Load(); g != nil {
		g.end()
	}
	p.client.Kill()
}

func (p *Process) kill() {
	if g := p.group.Load(); g != nil {
		g.kill()
	}
}
