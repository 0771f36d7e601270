package fleet

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Newer says whether a is the version of a later change than b. Machines, their sets and MachineDeployments lie in one etcd,
// which numbers all changes.
func Newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// Refused says that the API server has refused a request, so that it has changed nothing. Of other errors nobody knows.
func Refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError
}
