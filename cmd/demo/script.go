package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/millwright-dev/millwright/localcluster/stack"
)

// Options say where the demo runs. Stack and Out are required.
type Options struct {
	Stack stack.Options
	// Out is what the person who watches sees.
	Out io.Writer
	// Keep leaves the MachineDeployment and the cluster running until ctx ends.
	Keep bool
}

// Run plays the demo on a cluster of its own. It fails when anything that it shows is not so; the
// last line that it prints is its result.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{Options: o, observer: newObserver(o.Out)}
	d.title("A Kubernetes control plane, Millwright's manager and a cloud with its driver start")
	whole, err := stack.Start(ctx, o.Stack)
	if err != nil {
		return fmt.Errorf("start the cluster: %w", err)
	}
	defer func() { err = errors.Join(err, whole.Stop()) }()
	d.stack = whole
	if d.fleet, err = fleetOn(whole.Provider()); err != nil {
		return err
	}
	d.ledger, d.patience = newLedger(whole), d.fleet.patience
	if err := d.play(ctx); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if d.Keep {
		return d.stay(ctx)
	}
	if err := d.clear(ctx); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return d.judge(ctx)
}

type demo struct {
	Options
	*observer
	stack                   *stack.Stack
	fleet                   fleet
	lowestNodes, lowestPods int
}

// play is the demo up to its fullest state.
func (d *demo) play(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", d.stack.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read the cluster's kubeconfig: %w", err)
	}
	if err := d.follow(ctx, config); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{d.apply, d.scale, d.deploy, d.roll} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) apply(ctx context.Context) error {
	d.title("A MachineDeployment of %d is applied: Machines become VMs, VMs become Nodes", d.fleet.replicas)
	if err := d.kubectl(ctx, d.fleet.manifest, "apply", "-f", "-"); err != nil {
		return err
	}
	if err := d.awaitSize(ctx, d.fleet.replicas); err != nil {
		return err
	}
	return d.kubectl(ctx, nil, "get", "machinedeployments,machinesets,machines,nodes", "--all-namespaces")
}

func (d *demo) scale(ctx context.Context) error {
	d.title("It is scaled from %d to %d", d.fleet.replicas, d.fleet.scaledTo)
	if err := d.kubectl(ctx, nil, d.fleet.command("scale", fmt.Sprintf("--replicas=%d", d.fleet.scaledTo))...); err != nil {
		return err
	}
	return d.awaitSize(ctx, d.fleet.scaledTo)
}

func (d *demo) deploy(ctx context.Context) error {
	d.title("An application of %d pods moves in; its PodDisruptionBudget allows one of them to be down", d.fleet.scaledTo)
	if err := d.kubectl(ctx, d.fleet.application(), "apply", "-f", "-"); err != nil {
		return err
	}
	return d.await(ctx, "the application's pods", func() bool { return count(d.pods) == d.fleet.scaledTo })
}

func (d *demo) roll(ctx context.Context) error {
	d.title("The template changes: each machine is replaced, one more at a time (maxSurge 1), never one less (maxUnavailable 0)")
	old := d.names()
	d.keepWorst()
	if err := d.kubectl(ctx, nil, d.fleet.command("patch", "--type=merge", "--patch", d.fleet.change)...); err != nil {
		return err
	}
	err := d.await(ctx, "every machine to be replaced", func() bool {
		for name := range d.machines {
			if slices.Contains(old, name) {
				return false
			}
		}
		return d.settled(d.fleet.scaledTo) && count(d.pods) == d.fleet.scaledTo
	})
	if err != nil {
		return err
	}
	d.lowestNodes, d.lowestPods = d.worst()
	d.tell("rolled: never fewer than %d Nodes available, never fewer than %d pods healthy", d.lowestNodes, d.lowestPods)
	return d.kubectl(ctx, nil, "get", "machinedeployments,machinesets,machines,nodes,poddisruptionbudgets", "--all-namespaces")
}

func (d *demo) clear(ctx context.Context) error {
	d.title("Everything is deleted")
	if err := d.kubectl(ctx, nil, "delete", "deployment/web", "poddisruptionbudget/web", "--wait=false"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, nil, d.fleet.command("delete", "--wait=false")...); err != nil {
		return err
	}
	return d.await(ctx, "machines and Nodes to go", func() bool { return len(d.machines) == 0 && len(d.nodes) == 0 })
}

// judge compares the cloud's ledger with what the watches saw.
func (d *demo) judge(ctx context.Context) error {
	d.mu.Lock()
	totals, err := d.ledger.totals(ctx)
	d.mu.Unlock()
	if err != nil {
		return err
	}
	result := fmt.Sprintf("created=%d deleted=%d left=%d lowest_available=%d",
		totals.created, totals.deleted, totals.left, d.lowestNodes)
	var wrong []string
	if machines := d.machinesEver(); totals.created != int64(machines) {
		wrong = append(wrong, fmt.Sprintf("%d Machines, but %d VMs were created", machines, totals.created))
	}
	if totals.deleted != totals.created || totals.left != 0 {
		wrong = append(wrong, "something is left in the cloud")
	}
	if d.lowestNodes < d.fleet.scaledTo {
		wrong = append(wrong, fmt.Sprintf("fewer than %d Nodes were available during the rollout", d.fleet.scaledTo))
	}
	if d.lowestPods < d.fleet.podFloor() {
		wrong = append(wrong, fmt.Sprintf("the PodDisruptionBudget was broken: %d pods healthy, %d required", d.lowestPods, d.fleet.podFloor()))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("demo failed: %s: %s", result, strings.Join(wrong, "; "))
	}
	fmt.Fprintf(d.Out, "demo ok: %s\n", result)
	return nil
}

func (d *demo) stay(ctx context.Context) error {
	d.title("It stays up until Ctrl-C. In another terminal:")
	fmt.Fprintf(d.Out, "export KUBECONFIG=%s\n%s get machinedeployments,machinesets,machines,nodes --all-namespaces\n",
		d.stack.Kubeconfig(), filepath.Join(d.Stack.BinDir, "kubectl"))
	select {
	case <-ctx.Done():
		return nil
	case err := <-d.stack.Failed():
		return err
	}
}

func (d *demo) awaitSize(ctx context.Context, n int) error {
	return d.await(ctx, fmt.Sprintf("%d machines Running and as many Nodes Ready", n), func() bool { return d.settled(n) })
}

// settled needs d.mu held, as await gives.
func (d *demo) settled(n int) bool {
	return len(d.machines) == n && d.running() == n && len(d.nodes) == n && count(d.nodes) == n
}

// kubectl runs the user's hand and shows what it typed and got.
func (d *demo) kubectl(ctx context.Context, stdin []byte, args ...string) error {
	fmt.Fprintf(d.Out, "\n$ kubectl %s\n", strings.Join(args, " "))
	command := exec.CommandContext(ctx, filepath.Join(d.Stack.BinDir, "kubectl"), args...)
	command.Env = append(command.Environ(), "KUBECONFIG="+d.stack.Kubeconfig())
	command.Stdin = bytes.NewReader(stdin)
	out, err := command.CombinedOutput()
	fmt.Fprintf(d.Out, "%s\n", out)
	if err != nil {
		return fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

func (d *demo) title(format string, args ...any) {
	fmt.Fprintf(d.Out, "\n=== %s\n", fmt.Sprintf(format, args...))
}
