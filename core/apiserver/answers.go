// Package apiserver says what follows from versions of objects and from errors of the API server:
// whether a cache is behind, and whether a request has changed anything.
package apiserver

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// IsNewer says whether version a is newer than b, both of objects, or lists, of one kind. It is
// false if one of them cannot be read, as an empty one.
func IsNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// IsRefused says whether the error is the API server's refusal, so that the request has changed
// nothing. After any other error nobody knows whether it has.
func IsRefused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest &&
		status.Status().Code < http.StatusInternalServerError
}
