package mutant

import (
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
	}
}
