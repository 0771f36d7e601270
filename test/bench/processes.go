package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/localcluster"
	"github.com/millwright-dev/millwright/localcluster/stack"
)

// processes are those whose CPU time is told apart.
var processes = []string{
	localcluster.Etcd, localcluster.APIServer, localcluster.ControllerManager, localcluster.Scheduler, localcluster.Kwok,
	stack.Cloud, stack.Driver, stack.Kubelets, stack.Manager,
}

// self is this process among them.
const self = "bench"

// cpuSeconds is how much CPU time each process has used so far.
func (r *run) cpuSeconds() map[string]float64 {
	used := map[string]float64{self: cpuSeconds(os.Getpid())}
	for _, name := range processes {
		if p := r.stack.Process(name); p != nil && p.Pid() != 0 {
			used[name] = cpuSeconds(p.Pid())
		}
	}
	return used
}

// since is what was used after before.
func since(before, now map[string]float64) map[string]float64 {
	used := map[string]float64{}
	for name, seconds := range now {
		used[name] = round(seconds-before[name], 2)
	}
	return used
}

// clockTicks is what a second of CPU time counts in /proc; it is 100 on every Linux that Go runs
// on.
const clockTicks = 100

// cpuSeconds is 0 for a process that is not there.
func cpuSeconds(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name in parentheses may hold spaces; utime and stime are the 12th and 13th after it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / clockTicks
}

// peakMemory is the most that a process has held in memory so far, in MiB; 0 for one that is not
// there.
func peakMemory(pid int) float64 { return memory(pid, "VmHWM:") }

// anonymousInterval is how often the manager's anonymous memory is read: the kernel keeps no
// maximum of it.
const anonymousInterval = 200 * time.Millisecond

// watchAnonymousMemory follows how much memory, in MiB, a process holds that no file backs. It
// sends the maximum when ctx has ended.
func watchAnonymousMemory(ctx context.Context, pid int) <-chan float64 {
	result := make(chan float64, 1)
	go func() {
		tick := time.NewTicker(anonymousInterval)
		defer tick.Stop()
		var most float64
		for ctx.Err() == nil {
			most = max(most, memory(pid, "RssAnon:"))
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		result <- most
	}()
	return result
}

// memory is a field of a process's status, in MiB.
func memory(pid int, field string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), field)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kibibytes, _ := strconv.ParseFloat(fields[0], 64)
	return round(kibibytes/1024, 1)
}
