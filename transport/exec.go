package transport

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/millwright-dev/millwright/transport/launch"
)

// A driver that ends soon after it was started is started again later and later.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 5 * time.Second
	// longLife is how long it has to live for its end not to count.
	longLife = 10 * time.Second
)

// passedOn are the variables that a driver gets without being asked for: by them it reaches its
// cloud as this process would, through the same proxies and with the same CAs.
var passedOn = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// process is a driver that is started for each connection.
type process struct {
	command launch.Command
	log     launch.Log
	eager   bool

	mu    sync.Mutex
	pause time.Duration
	// next is when it may be started again.
	next time.Time
}

// parseExec is Command for what stands behind exec://.
func parseExec(rest string, o Options) (Transport, error) {
	command, err := parseCommand(rest)
	if err != nil {
		return nil, err
	}
	return &process{command: command, log: launch.Log{Logger: o.Log, Clean: o.Clean}, eager: o.Eager}, nil
}

// Command returns how the driver of an endpoint of the form
// exec:///PATH[?arg=ARG][&env=NAME][&sha256=HEX] is started, with the variables that it is to have.
func Command(endpoint string) (launch.Command, error) {
	rest, is := strings.CutPrefix(endpoint, "exec://")
	if !is {
		return launch.Command{}, fmt.Errorf("the endpoint %q starts no driver: write exec:///absolute/path", endpoint)
	}
	return parseCommand(rest)
}

// parseCommand reads /PATH[?arg=ARG][&env=NAME][&sha256=HEX]; arg and env may be repeated.
func parseCommand(rest string) (launch.Command, error) {
	path, query, err := splitQuery(rest, "arg", "env", "sha256")
	if err != nil {
		return launch.Command{}, err
	}
	if !filepath.IsAbs(path) {
		return launch.Command{}, errors.New("write the executable as exec:///absolute/path, with three slashes")
	}
	command := launch.Command{Path: path, Args: query["arg"]}
	for _, name := range passedOn {
		if value, set := os.LookupEnv(name); set {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	for _, name := range query["env"] {
		value, set := os.LookupEnv(name)
		if !set {
			return launch.Command{}, fmt.Errorf("env: the variable %q, which the driver is to have, is not set", name)
		}
		command.Env = append(command.Env, name+"="+value)
	}
	if sum := query.Get("sha256"); sum != "" {
		if command.SHA256, err = hex.DecodeString(sum); err != nil || len(command.SHA256) != 32 {
			return launch.Command{}, fmt.Errorf("sha256: %q is not a SHA-256 checksum in hexadecimal", sum)
		}
	}
	return command, nil
}

// Open implements Transport: it starts the driver. Closing the wire stops it.
func (p *process) Open(ctx context.Context) (*Wire, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := time.Until(p.next); left > 0 {
		return nil, fmt.Errorf("%w, in %s", ErrPaused, left.Round(time.Millisecond))
	}
	began := time.Now()
	started, err := launch.Start(ctx, p.command, p.log)
	if err != nil {
		p.backOff()
		if errors.Is(err, launch.ErrEnded) {
			return nil, away(err)
		}
		return nil, err
	}
	conn, err := dial(ctx, net.Dialer{}, started.Address.Network(), started.Address.String())
	if err != nil {
		started.Stop()
		p.backOff()
		return nil, err
	}
	release := func() {
		started.Stop()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.eager || time.Since(began) > longLife {
			p.pause, p.next = 0, time.Time{}
			return
		}
		p.backOff()
	}
	return &Wire{
		Conn: conn, Credentials: credentials.NewTLS(started.TLS), Authority: "localhost", Process: started.Process(), release: release,
	}, nil
}

// backOff has the next start wait. Call it with the lock held.
func (p *process) backOff() {
	p.next = time.Now().Add(p.pause)
	p.pause = min(max(2*p.pause, firstPause), lastPause)
}
