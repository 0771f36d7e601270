package sdk_test

import (
	"testing"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/rig"
)

func TestOnlyTheNewestLeaderOfAClusterChangesTheCloud(t *testing.T) {
	machines := driverv1alpha1.NewMachineServiceClient(rig.Start(t, &everything{}))
	calls := map[string]func(*driverv1alpha1.RequestMeta) error{
		"create": func(meta *driverv1alpha1.RequestMeta) error {
			r := goodCreate()
			r.Meta = meta
			_, err := machines.CreateMachine(t.Context(), r)
			return err
		},
		"delete": func(meta *driverv1alpha1.RequestMeta) error {
			r := goodCreate()
			_, err := machines.DeleteMachine(t.Context(), &driverv1alpha1.DeleteMachineRequest{Meta: meta, Machine: r.GetMachine(), Provider: r.GetProvider()})
			return err
		},
		"get": func(meta *driverv1alpha1.RequestMeta) error {
			r := goodCreate()
			_, err := machines.GetMachineStatus(t.Context(), &driverv1alpha1.GetMachineStatusRequest{Meta: meta, Machine: r.GetMachine(), Provider: r.GetProvider()})
			return err
		},
	}
	for _, step := range []struct {
		call, cluster string
		epoch         int64
		want, reason  string
	}{
		{"create", "blue", 0, "", "unknown, and nobody was seen yet"},
		{"create", "blue", 7, "", "the first"},
		{"delete", "blue", 7, "", "the same again"},
		{"create", "blue", 6, "STALE_EPOCH", "one before it"},
		{"delete", "blue", 6, "STALE_EPOCH", "one before it"},
		{"get", "blue", 6, "", "it changes nothing"},
		{"get", "blue", 9, "", "who only looks deposes nobody"},
		{"create", "blue", 8, "", "newer than all that have changed anything"},
		{"create", "blue", 7, "STALE_EPOCH", "the first is deposed"},
		{"create", "blue", 0, "", "unknown is never refused"},
		{"create", "red", 1, "", "another cluster has leaders of its own"},
	} {
		meta := &driverv1alpha1.RequestMeta{RequestId: "r1", ClusterUid: step.cluster, LeaderEpoch: step.epoch}
		if err := calls[step.call](meta); reasonOf(err) != step.want || (err == nil) != (step.want == "") {
			t.Errorf("%s of %s, epoch %d: %v, want %q: %s", step.call, step.cluster, step.epoch, err, step.want, step.reason)
		}
	}
}
