package cloud

import (
	"context"
	"slices"

	"google.golang.org/grpc/status"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// request is what is the same in all calls.
type request struct {
	operation string
	key       string
	// tags say whose call it is; where there are none, the resource's do.
	tags     map[string]string
	resource string
}

// turn is a call under way.
type turn struct {
	*testcloud.Turn
	account string
}

// plan sets what becomes of a new VM.
func (t *turn) plan(v *vm) {
	for _, f := range t.Struck {
		switch f.GetEffect() {
		case backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS:
			v.BootFault = bootsForever
		case backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS:
			v.BootFault = "The vm did not boot."
			if words := f.GetError().GetMessage(); words != "" {
				v.BootFault = words
			}
		}
	}
}

// do makes a call: it notes it, lets faults strike, and calls effect once, under the lock. It
// returns the account that the key opens. Only the end of the cloud keeps a call from its effect;
// the end of ctx does not.
func (c *Cloud) do(ctx context.Context, r request, effect func(*turn) error) (string, error) {
	t := c.receive(r)
	err := c.front.Run(ctx, t.Turn, injected, func() error {
		return c.front.TakeEffect(t.Turn, func() error {
			account, known := c.options.Accounts[r.key]
			if !known {
				return refuse(fakecloudv1alpha1.ErrorCode_ERROR_CODE_UNAUTHORIZED, "key", "The request you have made requires authentication.")
			}
			t.account = account
			return effect(t)
		})
	})
	s := status.Convert(err)
	c.front.End(ctx, t.Turn, testcloud.Answer{Code: s.Code(), Message: s.Message(), Err: err})
	return t.account, err
}

// receive notes a new call and chooses its faults.
func (c *Cloud) receive(r request) *turn {
	c.front.Lock()
	defer c.front.Unlock()
	whose := record{Tags: r.tags}
	if len(r.tags) == 0 {
		whose = c.store.lookup(r.resource)
	}
	return &turn{Turn: c.front.Begin(testcloud.Arrival{
		Operation: r.operation, Clusters: uids(whose.clusterUID()), Machines: uids(whose.machineUID()), Resource: r.resource,
		CreatesVM: r.operation == opCreateVM, Creates: slices.Contains(createOperations, r.operation),
	})}
}

// uids are those of one thing, none where it has none.
func uids(uid string) []string {
	if uid == "" {
		return nil
	}
	return []string{uid}
}
