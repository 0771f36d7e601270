package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// answerLimit bounds how long QEMU may take to answer.
const answerLimit = 2 * time.Second

// powerDown are the commands that press the power button. The first begins each conversation:
// https://www.qemu.org/docs/master/interop/qmp-spec.html
const powerDown = `{"execute": "qmp_capabilities"} {"execute": "system_powerdown"}`

// PowerDown presses the VM's power button: its system may shut down, and QEMU ends with it.
func (f Folder) PowerDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	// The path of a socket has at most 107 bytes, and that of a folder can be longer: the folder
	// is named by an open file.
	folder, err := os.Open(string(f))
	if err != nil {
		return err
	}
	defer folder.Close()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketFile))
	if err != nil {
		return fmt.Errorf("reach QEMU: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, powerDown); err != nil {
		return fmt.Errorf("ask QEMU: %w", err)
	}
	answers := json.NewDecoder(conn)
	for carriedOut := 0; carriedOut < 2; { // what is neither is the greeting or an event
		var answer struct{ Return, Error json.RawMessage }
		if err := answers.Decode(&answer); err != nil {
			return fmt.Errorf("answer of QEMU: %w", err)
		}
		if answer.Error != nil {
			return errors.New("QEMU refuses: " + string(answer.Error))
		}
		if answer.Return != nil {
			carriedOut++
		}
	}
	return nil
}
