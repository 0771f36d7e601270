package guest

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const (
	booting = `[    2.913371] systemd[1]: Detected virtualization qemu.
[  OK  ] Reached target sysinit.target - System Initialization.
`
	silent = booting + `
Debian GNU/Linux 12 localhost ttyS0

localhost login: `
	withoutData = booting + `[   31.02] cloud-init[312]: Cloud-init v. 22.4.2 finished at Sat, 28 Nov 2026 12:00:00 +0000. Datasource DataSourceNone.  Up 31.02 seconds

localhost login: `
	joining = booting + `
worker-1 login: [   41.7] cloud-init[402]: Created symlink /etc/systemd/system/multi-user.target.wants/kubelet.service.
`
)

func TestStuck(t *testing.T) {
	for name, tc := range map[string]struct {
		console  string
		prompted time.Duration
		want     bool
	}{
		"it boots":                         {booting, 0, false},
		"it has just shown its prompt":     {silent, 10 * time.Second, false},
		"it has shown its prompt for long": {silent, Patience, true},
		"it found no user data":            {withoutData, 0, true},
		"its kubelet starts":               {joining, time.Hour, false},
		"its console is empty":             {"", time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Stuck([]byte(tc.console), tc.prompted); errors.Is(got, ErrStuck) != tc.want {
				t.Errorf("error %v, want one: %t", got, tc.want)
			}
		})
	}
}

func TestEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		console, want string
		lines         int
	}{
		"fewer lines": {"a\n", "a", 3},
		"more lines":  {"a\nb\nc\n\n", "b\nc", 2},
		"none":        {"", "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(End([]byte(tc.console), tc.lines)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if lines := strings.Count(string(End([]byte(strings.Repeat("x\n", 100)), 60)), "\n"); lines != 59 {
		t.Errorf("%d line ends, want 59", lines)
	}
}
