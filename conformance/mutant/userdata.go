package mutant

import (
	"bytes"
	"sync"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func ofUserData() []Mutant {
	return []Mutant{
		{Name: "textual", Check: "user-data/exact", mutate: asked(func(r *createReq) { r.UserData = bytes.ReplaceAll(r.GetUserData(), []byte("\r\n"), []byte("\n")) })},
		{Name: "comparing-user-data", Check: "user-data/rotated", mutate: comparingUserData},
		{Name: "taking-less", Check: "user-data/max", mutate: refused(func(r *createReq) error {
			if len(r.GetUserData()) >= contract.DefaultMaxUserDataBytes {
				return fail(driverv1alpha1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE, "too much user data")
			}
			return nil
		})},
		{Name: "cutting-user-data", Check: "user-data/over", mutate: asked(func(r *createReq) {
			r.UserData = r.GetUserData()[:min(len(r.GetUserData()), contract.DefaultMaxUserDataBytes)]
		})},
	}
}

// comparingUserData refuses a create whose user data is not that of the first.
func comparingUserData(next handler) handler {
	var first sync.Map
	return refused(func(r *createReq) error {
		if was, seen := first.LoadOrStore(r.GetMachine().GetUid(), r.GetUserData()); seen && !bytes.Equal(was.([]byte), r.GetUserData()) {
			return fail(conflict, "other user data")
		}
		return nil
	})(next)
}
