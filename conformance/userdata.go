package conformance

import (
	"bytes"
	"context"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func userDataChecks() []Check {
	return []Check{
		{
			ID: "user-data/exact", Level: Must, Musts: []int{93}, Hooks: true, run: userDataExact,
			Rule: "user_data reaches the VM byte for byte; it can be binary.",
		},
		{
			ID: "user-data/rotated", Level: Must, Musts: []int{45}, run: userDataRotated,
			Rule: "User data rotates: a create with other user data returns the VM that exists.",
		},
		{
			ID: "user-data/max", Level: Must, Musts: []int{20}, run: userDataMax,
			Rule: "A driver accepts exactly as much user data as it announces.",
		},
		{
			ID: "user-data/over", Level: Must, Musts: []int{21}, run: userDataOver,
			Rule: "More user data than announced is refused with REQUEST_TOO_LARGE.",
		},
	}
}

// noise returns n bytes of every value, which follow from the run's seed.
func (s *session) noise(n int) []byte {
	raw := make([]byte, n)
	_, _ = s.dice.Read(raw) // it never fails
	return raw
}

func userDataExact(ctx context.Context, t *trial) {
	m := t.machine()
	m.userData = append([]byte{0, 0xff, '\r', '\n', 0}, t.noise(2000)...)
	m.running(ctx)
	vms := t.cloud.vms(ctx, m)
	if len(vms) != 1 || !bytes.Equal(vms[0].GetUserData(), m.userData) {
		t.errorf("of %d bytes of user data not the same have reached the VM", len(m.userData))
	}
}

func userDataRotated(ctx context.Context, t *trial) {
	m := t.machine()
	id := m.running(ctx).GetProviderId()
	m.userData = []byte("#cloud-config\n# with another token\n")
	m.forget()
	if now, err := m.create(ctx); err != nil || now.GetProviderId() != id {
		t.errorf("created again with other user data, the VM %s is %q (%v)", id, now.GetProviderId(), err)
	}
}

func userDataMax(ctx context.Context, t *trial) {
	m := t.machine()
	m.userData = t.noise(t.maxUserData())
	m.running(ctx)
}

func userDataOver(ctx context.Context, t *trial) {
	m := t.machine()
	m.userData = t.noise(t.maxUserData() + 1)
	_, err := m.create(ctx)
	t.expect("a create with a byte more of user data than announced", err, driverv1alpha1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE)
}
