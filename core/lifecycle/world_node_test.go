package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// bootstrapToken lasts until it expires; then it is cleaned away.
type bootstrapToken struct {
	serial  int
	expires time.Time
}

// tokenLife is how long a token lasts, tokenMargin how long before its end it is extended.
const tokenLife, tokenMargin = 25 * time.Minute, 4 * time.Minute

// mint has the machine have a token, before a create. It returns false where there is none and the
// step wants no other: a VM that was made, or may be, has the one of before.
func (w *world) mint(another bool) bool {
	w.renew()
	switch {
	case w.token != nil:
		return true
	case !another:
		return false
	case w.tokenless:
		w.known.NotNeeded = true
		return true
	case w.vm != nil && w.vmToken != 0 && !w.certified:
		w.breaks("another token is minted, and the VM has the first")
	case slices.ContainsFunc(w.landed, func(l landing) bool { return l.token != 0 }):
		w.breaks("another token is minted while a create may land with the first")
	}
	w.writes++
	w.tokens++
	w.token = &bootstrapToken{w.tokens, w.now.Add(tokenLife)}
	w.known.RenewAt = w.token.expires.Add(-tokenMargin)
	return true
}

// inspectTokenless judges a status of a machine whose user data never had a place for a token.
func (w *world) inspectTokenless(s Status) {
	if !w.tokenless || w.edited || w.born != "" {
		return
	}
	for _, c := range s.Conditions {
		if strings.HasPrefix(c.Reason, "Token") && c.Reason != clusterv1alpha1.ReasonBootstrapTokenNotNeeded {
			w.breaks("%s is %s of a machine that needs no token", c.Type, c.Reason)
		}
	}
	if w.tokens > 0 {
		w.breaks("a token is minted that nobody needs")
	}
}

// certify has the VM's kubelet get its certificate, if its token is good for one.
func (w *world) certify() {
	isGood := w.vmToken == 0 || w.token != nil && w.token.serial == w.vmToken
	if w.vm != nil && w.vm.State == instance.Running && isGood {
		w.certified = true
	}
}

// inspectShutOut judges a machine that is given up because its token is lost.
func (w *world) inspectShutOut() {
	switch {
	case w.vm == nil:
	case w.edited:
		// The machine needs a token by its user data of now. Its VM may be from before.
	case w.certified:
		w.breaks("a VM is given up whose kubelet has its certificate")
	case w.vmToken == 0 || w.token != nil && w.token.serial == w.vmToken:
		w.breaks("a VM is given up whose token is valid")
	}
}

// renew reads the token, and extends it if it is about to expire.
func (w *world) renew() {
	w.known = Token{Known: true, ReadAt: w.now}
	if w.token == nil {
		return
	}
	if !w.now.Before(w.token.expires.Add(-tokenMargin)) {
		w.writes++
		w.token.expires = w.now.Add(tokenLife)
	}
	w.known.RenewAt = w.token.expires.Add(-tokenMargin)
}

func (w *world) deleteToken(s *State) {
	switch {
	case s.Machine.DeletionTimestamp.IsZero() && s.Node.Match != NodeFound:
		w.breaks("the token goes before the Node is there")
	case w.token != nil:
		w.writes++
	}
	w.token, w.known = nil, Token{Known: true}
}

// admit takes the start-up taints away, if the step says so, and judges whether it was time.
func (w *world) admit(node *Node, admit bool) {
	if admit && (!w.nodeReady || w.gateHolds()) {
		w.breaks("start-up taints go though the Node is ready %t, uninitialised %t, starting %t", w.nodeReady, w.uninitialized, w.starting)
	}
	w.tainted = w.tainted && !admit
	node.HasStartupTaints = w.tainted
}

// gateHolds says whether something keeps pods from a Node that is Ready.
func (w *world) gateHolds() bool {
	return w.uninitialized || w.cache.AwaitsDaemonSets && (w.starting || w.hidden)
}

// daemonSets is a look at the critical DaemonSets.
func (w *world) daemonSets() *DaemonSets {
	switch {
	case w.hidden:
		return &DaemonSets{Error: "forbidden"}
	case w.starting:
		return &DaemonSets{Waiting: "kube-system/network"}
	}
	return &DaemonSets{}
}

// register has a kubelet register its Node, as it does after its VM has started and after its Node
// was deleted.
func (w *world) register(uninitialized bool) {
	if w.certify(); w.node || !w.certified || w.vm == nil || w.vm.State != instance.Running {
		return
	}
	w.node, w.tainted, w.uninitialized = true, w.startup, uninitialized
}

// syncNode sets on the Node what is wanted there, and judges how often that is done.
func (w *world) syncNode() {
	w.synced = true
	w.writes++
	w.syncs = slices.DeleteFunc(append(w.syncs, w.now), func(t time.Time) bool { return t.Before(w.now.Add(-syncWindow)) })
	// The pauses double from a second to five minutes: no more than ten of them fit into the
	// window.
	if len(w.syncs) > syncBurst+10 {
		w.breaks("%d syncs of a Node in %s", len(w.syncs), syncWindow)
	}
}

func (w *world) drain() *Drain {
	d := &Drain{Silent: w.silent, RenewTime: w.renewed}
	if w.blocked {
		d.Blocked = "pod a/b: the budget needs it"
		return d
	}
	d.Done, d.Terminating = w.pods == 0, true
	if w.oneByOne && w.pods > 0 && w.volumes > 0 && !w.silent {
		d.Terminating, d.Next = false, strconv.Itoa(w.volumes)+" volumes"
	}
	return d
}

// attached is a look at the volumes of the Node. Where the drain was skipped, they are those of
// pods that are left there.
func (w *world) attached(skipped bool) *Volumes {
	found := &Volumes{}
	if skipped && w.pods > 0 {
		return found
	}
	if w.volumes > 0 {
		found.Attached = strconv.Itoa(w.volumes) + " volumes"
	}
	if w.volumes > 0 && (w.claimsHidden || w.dark) {
		found.Error = "forbidden"
	}
	return found
}

// attach has volumes be attached to the Node. A machine on its way out gets no more of them: its
// Node is cordoned.
func (w *world) attach(n int, claimsHidden bool) {
	if w.api != nil && !w.api.DeletionTimestamp.IsZero() {
		n = min(n, w.volumes)
	}
	w.volumes, w.claimsHidden = n, claimsHidden
}

// inspectVolumes judges a delete of a VM whose Node has volumes attached.
func (w *world) inspectVolumes(s State, step Step) {
	drained := step.Memory.Drained.Reason
	if drained == "" {
		drained = s.Machine.Status.Condition(clusterv1alpha1.ConditionDrained).Reason
	}
	recorded := s.Machine.Status.Condition(clusterv1alpha1.ConditionVolumesDetached).Reason
	// Pods that a drain has left may end after it was found that no volume is to be waited for.
	noneAwaited := w.pods > 0 || step.Memory.Detached || recorded == clusterv1alpha1.ReasonDetached
	switch {
	case w.volumes == 0 || w.vm == nil || s.Node.Match != NodeFound:
	case drained == clusterv1alpha1.ReasonNodeUnreachable:
	case drained == clusterv1alpha1.ReasonDrainSkipped && noneAwaited:
	case recorded == clusterv1alpha1.ReasonVolumeWaitSkipped:
	case recorded == clusterv1alpha1.ReasonVolumeDetachTimedOut:
		// Whether that was so is judged when it is written: see inspectEnd.
	default:
		w.breaks("a delete while %d volumes are attached", w.volumes)
	}
}

// leave has the driver, or the API server, go or come back.
func (w *world) leave(driver, server bool) {
	w.away, w.dark = driver, server
	w.clock.Runs, w.clock.Away = !driver && !server, ""
	if driver {
		w.clock.Away = "the driver is away"
	}
}

// beat has the Node's kubelet renew its Lease, or not; said to be silent it may be either way.
func (w *world) beat(renews, silent, alone bool) {
	w.silent, w.alone = silent, alone
	if renews && !w.dark {
		w.renewed, w.quiet = w.now, 0
	}
}

// end deletes the machine, as anybody may.
func (w *world) end() {
	if w.api == nil || !w.api.DeletionTimestamp.IsZero() {
		return
	}
	w.version++
	w.api.DeletionTimestamp = w.now
	if !w.api.Finalizer {
		w.api = nil
	}
}

// boot makes the VM with a token, unless the uid has one.
func (w *world) boot(token int) {
	if w.vm == nil {
		w.vmToken, w.certified = token, false
		w.made++
		w.waitsFrom = w.clock.Cloud
		w.vm = &instance.Instance{
			ProviderID: fmt.Sprintf("cloud:///%d", w.made), State: instance.Creating, LastKnownState: []byte("x"),
			Addresses: []corev1.NodeAddress{{Type: "InternalIP", Address: "192.0.2.1"}},
		}
	}
}

// cloud changes the VM from outside.
func (w *world) cloud(to instance.State) {
	switch {
	case w.vm == nil:
	case w.vm.State == instance.Deleting || to == "gone":
		// A VM whose create has not been answered yet does not vanish: only one that ran.
		if w.vm.State != instance.Creating {
			w.vm = nil
		}
	default:
		w.vm.State = to
	}
}

// observe looks at the VM.
func (w *world) observe() {
	next := &instance.Observation{At: w.now, Looks: 1}
	switch {
	case w.away:
		return
	case w.blind != "":
		next.Failure = &instance.Failure{Class: w.blind, Reason: string(w.blind), Message: "the cloud's words"}
		if w.look != nil {
			next.Instance = w.look.Instance
		}
	case w.vm == nil:
		next.Failure = &instance.Failure{Class: instance.NotFound, Reason: "MachineNotFound"}
	default:
		vm := *w.vm
		next.Instance = &vm
		w.told[vm.ProviderID] = true
	}
	if w.look != nil && w.look.Failure != nil && next.Failure != nil && w.look.Failure.Class == next.Failure.Class {
		next.Looks = w.look.Looks + 1
	}
	w.look = next
}
