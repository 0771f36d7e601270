package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// answerLimit bounds how long QEMU may take to answer.
const answerLimit = 2 * time.Second

// PowerDown presses the VM's power button: its system may shut down, and QEMU ends with it.
func (f Folder) PowerDown(ctx context.Context) error { return f.command(ctx, "system_powerdown") }

// command has QEMU carry out a command without arguments. The protocol is QMP:
// https://www.qemu.org/docs/master/interop/qmp-spec.html
func (f Folder) command(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	conn, err := f.dial(ctx)
	if err != nil {
		return fmt.Errorf("reach QEMU: %w", err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	answers := json.NewDecoder(conn)
	var greeting json.RawMessage
	if err := answers.Decode(&greeting); err != nil {
		return fmt.Errorf("greeting of QEMU: %w", err)
	}
	for _, one := range []string{"qmp_capabilities", name} {
		if err := execute(conn, answers, one); err != nil {
			return fmt.Errorf("QEMU's %s: %w", one, err)
		}
	}
	return nil
}

// dial connects to the control socket. The path of a socket has at most 107 bytes, and that of a
// folder can be longer: the folder is named by an open file.
func (f Folder) dial(ctx context.Context) (net.Conn, error) {
	folder, err := os.Open(string(f))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	var d net.Dialer
	return d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketFile))
}

func execute(conn net.Conn, answers *json.Decoder, name string) error {
	if err := json.NewEncoder(conn).Encode(map[string]string{"execute": name}); err != nil {
		return err
	}
	for {
		var answer struct {
			Return json.RawMessage `json:"return"`
			Error  *struct {
				Description string `json:"desc"`
			} `json:"error"`
		}
		if err := answers.Decode(&answer); err != nil {
			return err
		}
		switch {
		case answer.Error != nil:
			return errors.New(answer.Error.Description)
		case answer.Return != nil:
			return nil
		}
		// It was an event.
	}
}
