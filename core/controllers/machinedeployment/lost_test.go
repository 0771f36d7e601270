package machinedeployment_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

// late loses the answer of one request about a MachineSet, and holds the request itself up until
// the test lets it arrive.
type late struct {
	mu sync.Mutex
	// meanwhile is called before the loss is noticed; nil where no answer is to be lost.
	meanwhile func()
	request   func(context.Context) error
}

var errLost = errors.New("the answer was lost")

// loses has the answer of the next request be lost.
func (l *late) loses(meanwhile func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meanwhile = meanwhile
}

// held says whether the request is held up.
func (l *late) held(o client.Object, request func(context.Context) error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, set := o.(*clusterv1alpha1.MachineSet); !set || l.meanwhile == nil {
		return false
	}
	l.meanwhile()
	l.meanwhile, l.request = nil, request
	return true
}

// arrive carries out what was held up. It is false if there is nothing.
func (l *late) arrive(ctx context.Context) (error, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.request == nil {
		return nil, false
	}
	return l.request(ctx), true
}

func (l *late) creates() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			sent := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
			if l.held(o, func(ctx context.Context) error { return c.Create(ctx, sent, opts...) }) {
				return errLost
			}
			return c.Create(ctx, o, opts...)
		},
	}
}

func (l *late) sizes() interceptor.Funcs {
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			sent := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
			if l.held(o, func(ctx context.Context) error { return c.Patch(ctx, sent, p, opts...) }) {
				return errLost
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}
}

// nodesOf is the deployment nodes, yet to be read: the controllers' goroutines must not use the
// test's.
func nodesOf(c *controllertest.Cluster) *clusterv1alpha1.MachineDeployment {
	return &clusterv1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "nodes"}}
}

// The create of a set, whose answer is lost, is carried out after its deployment was given another
// template and has another set: it brings no Machine of the template that nobody wants any more.
func TestROL1_ALostCreateThatIsLateBringsNoMachines(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	requests := &late{}
	manageWith(t, c, requests.creates())
	audit := c.Audit(t)
	requests.loses(func() { controllertest.Patch(t, c, nodesOf(c), kubelet("1.36.2")) })
	md := newDeployment(t, c, 3)
	isComplete(t, c, md, 3)
	err, was := requests.arrive(t.Context())
	if !was || err != nil {
		t.Fatalf("the late request: %t, %v", was, err)
	}
	// What it has made is seen, and taken for what it is.
	c.Eventually(t, func() string {
		for _, set := range sets(t, c) {
			if set.Status.ObservedGeneration == 0 {
				return "the late set was not looked at"
			}
		}
		return ""
	})
	controllertest.Patch(t, c, md, size(4))
	isComplete(t, c, md, 4)
	if audit.Most() > 4 || audit.Made() != 4 {
		t.Errorf("there were up to %d Machines, and %d were made, of 4: %v", audit.Most(), audit.Made(), tellSets(t, c))
	}
}

// The size of a set is late instead. Nobody makes another set beside it as long as it may come.
func TestROL1_ALostSizeThatIsLateIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	requests := &late{}
	manageWith(t, c, requests.sizes())
	md := newDeployment(t, c, 0)
	isComplete(t, c, md, 0)
	audit := c.Audit(t)
	requests.loses(func() { controllertest.Patch(t, c, nodesOf(c), kubelet("1.36.2")) })
	controllertest.Patch(t, c, nodesOf(c), size(3))
	first := sets(t, c)[0].Name
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(md), md); err != nil {
			return err.Error()
		}
		progressing := apimeta.FindStatusCondition(md.Status.Conditions, clusterv1alpha1.ConditionProgressing)
		if len(sets(t, c)) == 1 && (progressing == nil || progressing.Message != "Waiting for MachineSet "+first+" to be observed") {
			return fmt.Sprintf("nothing is waited for: %+v", progressing)
		}
		return ""
	})
	if all := tellSets(t, c); len(all) != 1 {
		t.Errorf("another set was made: %v", all)
	}
	if err, was := requests.arrive(t.Context()); !was || err != nil {
		t.Fatalf("the late request: %t, %v", was, err)
	}
	isComplete(t, c, md, 3)
	if audit.Most() > 4 {
		t.Errorf("there were %d Machines at once, more than 3 and a surge of 1: %v", audit.Most(), tellSets(t, c))
	}
}

// Two statuses of a set come between the set and its size. The set is given its size all the same,
// and no set of before grows, though the deployment's size was changed together with its template.
func TestROL1_AStatusDoesNotKeepASetFromItsSize(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	written := map[types.UID]int32{}
	manageWith(t, c, interceptor.Funcs{
		Patch: func(ctx context.Context, cl client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if set, isSet := o.(*clusterv1alpha1.MachineSet); isSet && set.Generation == 1 && written[set.UID] < 2 {
				written[set.UID]++
				changed := set.DeepCopy()
				changed.Status.FullyLabeledReplicas = 7 * written[set.UID]
				if err := cl.Status().Patch(ctx, changed, client.MergeFrom(set)); err != nil {
					return err
				}
			}
			return cl.Patch(ctx, o, patch, opts...)
		},
	})
	md := newDeployment(t, c, 1)
	isComplete(t, c, md, 1)
	audit := c.Audit(t)
	controllertest.Patch(t, c, nodesOf(c), func(md *clusterv1alpha1.MachineDeployment) {
		size(2)(md)
		kubelet("1.36.2")(md)
	})
	isComplete(t, c, md, 2)
	if audit.Made() != 1+2 {
		t.Errorf("%d Machines were made, for 1 of the old template and 2 of the new: %v", audit.Made(), tellSets(t, c))
	}
}
