package mutant

import (
	"net"
	"os"
)

func ofExec() []Mutant {
	return []Mutant{
		{Name: "serving-anybody", Check: "exec/handshake", Launch: true, mutate: unchanged},
		{Name: "writing-beside-itself", Check: "exec/read-only-root", Launch: true, mutate: refused(func(*createReq) error {
			path, err := os.Executable()
			if err == nil {
				err = os.WriteFile(path+".state", nil, 0o600)
			}
			if err != nil {
				return fail(internal, "cannot write its state")
			}
			return nil
		})},
		{Name: "kept-out-by-a-dead-socket", Check: "exec/stale-socket", Launch: true, Listen: onFreePath, mutate: unchanged},
		{Name: "taking-any-socket", Check: "exec/live-socket", Launch: true, Listen: onAnyPath, mutate: unchanged},
	}
}

// onFreePath listens where there is no file yet.
func onFreePath(path string) (net.Listener, error) { return net.Listen("unix", path) }

// onAnyPath takes away what is there, whoever uses it.
func onAnyPath(path string) (net.Listener, error) {
	if err := os.RemoveAll(path); err != nil {
		return nil, err
	}
	return onFreePath(path)
}
