// Package guest reads what a virtual machine prints on its console.
package guest

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// ErrStuck says that a guest will not become a Node: nobody has to wait for it.
var ErrStuck = errors.New("the guest waits at its login prompt and starts no kubelet")

// Patience is how long a guest may show its login prompt before its kubelet starts. cloud-init
// starts the kubelet after the prompt; without KVM on a busy machine that takes a minute.
const Patience = 100 * time.Second

var (
	prompt  = []byte(" login:")
	kubelet = []byte("kubelet")
	// finished is cloud-init's last line where it found no user data.
	finished = []byte("Datasource DataSourceNone")
)

// AtPrompt says whether the console shows a login prompt.
func AtPrompt(console []byte) bool { return bytes.Contains(console, prompt) }

// Stuck returns an error that wraps [ErrStuck] if the guest of this console has shown its login
// prompt for that long, and nothing tells of a kubelet. It does so at once where cloud-init has
// found no user data.
func Stuck(console []byte, prompted time.Duration) error {
	switch {
	case !AtPrompt(console) || bytes.Contains(console, kubelet):
		return nil
	case bytes.Contains(console, finished):
		return fmt.Errorf("%w: cloud-init found no user data", ErrStuck)
	case prompted >= Patience:
		return fmt.Errorf("%w: for %s", ErrStuck, prompted.Round(time.Second))
	default:
		return nil
	}
}

// End returns the last lines of a console.
func End(console []byte, lines int) []byte {
	all := bytes.Split(bytes.TrimRight(console, "\n"), []byte("\n"))
	return bytes.Join(all[max(0, len(all)-lines):], []byte("\n"))
}
