package fleet

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Newer says whether a is the version of a later change than b. Kubernetes promises an order only among objects of one kind:
// who has versions of several has a type for each, so that they cannot be compared.
func Newer[V ~string](a, b V) bool {
	order, err := resourceversion.CompareResourceVersion(string(a), string(b))
	return err == nil && order > 0
}

// Refused says that the API server has refused a request, so that it has changed nothing. Of other errors nobody knows.
func Refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError
}
