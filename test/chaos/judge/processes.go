package judge

// Canary is a Find: a secret.
const Canary = "a secret"

// ours are Millwright's processes.
var ours = map[string]bool{"manager": true, "driver": true, "cloud": true, "kubelets": true}

// judgeProcesses: nothing of Millwright crashes, races or tells secrets.
func (j *Judge) judgeProcesses(h History) {
	for _, f := range h.Finds {
		promise := Sound
		if f.What == Canary {
			promise = Secrets
		}
		j.violate(promise, j.world.now, "the log of %s holds %s: %s", f.Process, f.What, f.Line)
	}
	for _, e := range h.Ends {
		if ours[e.Process] && (e.State != "exit status 1" || !j.acts.haveCutOff(e.At)) {
			j.violate(Sound, e.At, "%s ended by itself, with %s: %s", e.Process, e.State, e.Tail)
		}
	}
}
