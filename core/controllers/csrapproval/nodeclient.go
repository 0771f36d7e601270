package csrapproval

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/core/bootstrap/token"
)

// nodeClientCheck warns where kube-controller-manager would approve any Node's name for whoever has
// a bootstrap token. It asks when this process begins to lead, and each minute until it is told: an
// API server that has just started forbids everything.
type nodeClientCheck struct {
	client    client.Writer
	events    events.EventRecorder
	regarding *corev1.ObjectReference
	log       logr.Logger
}

// askInterval is the time between two questions while there is no answer.
const askInterval = time.Minute

// Start asks until there is an answer or ctx ends.
func (c nodeClientCheck) Start(ctx context.Context) error {
	_ = wait.PollUntilContextCancel(ctx, askInterval, true, c.ask) // it fails only when ctx ends
	return nil
}

// ask says whether there was an answer.
func (c nodeClientCheck) ask(ctx context.Context) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   bootstrapapi.BootstrapUserPrefix + "000000",
		Groups: []string{bootstrapapi.BootstrapDefaultGroup, token.Group, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Subresource: "nodeclient", Verb: "create",
		},
	}}
	if err := c.client.Create(ctx, review); err != nil {
		if ctx.Err() == nil {
			c.log.Error(err, "Cannot tell whether bootstrap tokens may have certificates for any Node")
		}
		return false, nil
	}
	if !review.Status.Allowed {
		return true, nil
	}
	c.log.Info("Bootstrap tokens may have certificates for any Node: kube-controller-manager approves their requests", "why", review.Status.Reason)
	c.events.Eventf(c.regarding, nil, corev1.EventTypeWarning, "BootstrapTokensMayBeAnyNode", "Check",
		"The group %s or %s may use nodeclient, so that kube-controller-manager approves any Node's name for whoever has a bootstrap token: remove the binding. %s",
		bootstrapapi.BootstrapDefaultGroup, token.Group, review.Status.Reason)
	return true, nil
}
