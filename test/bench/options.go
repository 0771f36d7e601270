package bench

import (
	"io"
	"log/slog"
	"time"
)

// Options say what to measure. BinDir, DeployDir, Dir and Machines are required.
type Options struct {
	// Machines is how many there are at most, but for a rollout's surge.
	Machines int
	// BinDir holds all executables, DeployDir is the repository's deploy folder.
	BinDir, DeployDir string
	// Dir holds all that is written. Sockets lie in it, so its path has to be short.
	Dir string
	// Idle is how long the idle fleet is left to settle, and then how long its writes are counted;
	// 0 means 60 s.
	Idle time.Duration
	// Autoscaler has the MachineDeployment carry the sizes of an autoscaler, so that a rollout
	// holds off the scale-down of its Nodes.
	Autoscaler bool
	// Join has simulated kubelets join with certificates of their own, as real ones do. Without it
	// they register Nodes at once.
	Join bool
	// Profiles is a folder; empty means none. It gets CPU profiles of the manager of 2 s in each
	// phase, and after it the manager's heap and the API server's metrics.
	Profiles string
	// ManagerArgs are added to the manager's command line.
	ManagerArgs []string
	// Out gets the table; nil discards it. Log gets a line per step.
	Out io.Writer
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Idle == 0 {
		o.Idle = time.Minute
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// surge is the rollout's maxSurge, as MachineDeployments round it.
func (o Options) surge() int { return (o.Machines + 9) / 10 }

// phaseLimit bounds a phase; one that takes as long is broken.
func (o Options) phaseLimit() time.Duration {
	return 5*time.Minute + time.Duration(o.Machines)*time.Second
}
