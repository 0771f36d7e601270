package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// Result is how a step or a part ended.
type Result struct {
	// Name is the target of the Makefile.
	Name string
	// Passed says that the target succeeded.
	Passed bool
	// Skipped says why the target did not run; empty where it did.
	Skipped string `json:",omitempty"`
	// Left is what it left behind: processes, temporary files, network namespaces.
	Left []string `json:",omitempty"`
	// Wall is how long it took. CPU is what it and all processes below it took, as far as they were
	// waited for.
	Wall, CPU time.Duration
}

// ErrFailed is what [Runner.Run] returns where a target failed.
var ErrFailed = errors.New("failed")

// Runner runs targets of the Makefile in Dir. What they print goes to Out.
type Runner struct {
	// Make is the program, with what comes before the name of a target.
	Make []string
	Dir  string
	Out  io.Writer
}

// Run runs one target and says how long it took. A target that leaves processes, temporary files or
// network namespaces behind has failed. What a failed one has left in its temporary folder stays,
// since logs are there.
func (r Runner) Run(ctx context.Context, target string) Result {
	_, _ = fmt.Fprintf(r.Out, "== make %s\n", target)
	began := time.Now()
	result, err := r.make(ctx, target)
	result.Wall = time.Since(began)
	if err != nil {
		_, _ = fmt.Fprintf(r.Out, "make %s: %v\n", target, err)
	}
	for _, line := range result.Left {
		_, _ = fmt.Fprintf(r.Out, "make %s has left behind %s\n", target, line)
	}
	_, _ = fmt.Fprintf(r.Out, "== make %s %s\n", target, result.figures())
	return result
}

func (r Runner) make(ctx context.Context, target string) (Result, error) {
	result := Result{Name: target}
	if err := adoptOrphans(); err != nil {
		return result, err
	}
	place, err := newPlace()
	if err != nil {
		return result, err
	}
	command := exec.CommandContext(ctx, r.Make[0], append(r.Make[1:len(r.Make):len(r.Make)], target)...)
	command.Dir, command.Stdout, command.Stderr = r.Dir, r.Out, r.Out
	command.Env = append(os.Environ(), "TMPDIR="+place.temp)
	// Whoever interrupts this program interrupts the whole group of processes, make among them.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	err = command.Run()
	if state := command.ProcessState; state != nil {
		result.CPU = state.UserTime() + state.SystemTime()
	}
	if err != nil {
		_, _ = endOrphans()
		if os.Remove(place.temp) != nil { // it is not empty
			err = fmt.Errorf("%w: its temporary files, logs among them, are in %s", err, place.temp)
		}
		return result, err
	}
	result.Left, err = place.left()
	result.Passed = err == nil && len(result.Left) == 0
	return result, err
}

// RunAll runs targets one after the other, those after a failed one, too, and prints a summary. It
// returns an error that wraps [ErrFailed] where one failed, and the context's where that ended.
func (r Runner) RunAll(ctx context.Context, targets []string) error {
	var results []Result
	for _, target := range targets {
		if ctx.Err() != nil {
			break
		}
		results = append(results, r.Run(ctx, target))
	}
	return errors.Join(ctx.Err(), Summarize(r.Out, results))
}

// figures are a result in words.
func (r Result) figures() string {
	switch {
	case r.Skipped != "":
		return "skipped: " + r.Skipped
	case r.Passed:
		return fmt.Sprintf("took %.0f s, %.0f s of CPU", r.Wall.Seconds(), r.CPU.Seconds())
	default:
		return fmt.Sprintf("FAILED after %.0f s, %.0f s of CPU", r.Wall.Seconds(), r.CPU.Seconds())
	}
}

// Summarize prints how each target ended. It returns an error that wraps [ErrFailed] and counts
// those that failed.
func Summarize(out io.Writer, results []Result) error {
	var all Result
	failed := 0
	_, _ = fmt.Fprintln(out, "== summary")
	for _, r := range results {
		_, _ = fmt.Fprintf(out, "%-15s %s\n", r.Name, r.figures())
		all.Wall, all.CPU = all.Wall+r.Wall, all.CPU+r.CPU
		if !r.Passed && r.Skipped == "" {
			failed++
		}
	}
	all.Passed = failed == 0
	_, _ = fmt.Fprintf(out, "%-15s %s\n", "all", all.figures())
	if failed > 0 {
		return fmt.Errorf("%d of %d %w", failed, len(results), ErrFailed)
	}
	return nil
}
