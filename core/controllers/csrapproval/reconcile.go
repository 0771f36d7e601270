package csrapproval

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/millwright-dev/millwright/core/bootstrap/csr"
	"github.com/millwright-dev/millwright/core/conditions"
	"github.com/millwright-dev/millwright/core/messages"
	"github.com/millwright-dev/millwright/core/requeue"
)

const (
	// reasonVerified is the reason of the condition Approved.
	reasonVerified = "MachineVerified"
	// eventRefused is the reason of Events that tell of a refusal.
	eventRefused = "CertificateRefused"
	// A request that waits is looked at again when it is half as old again, within these bounds.
	firstRecheck, lastRecheck = time.Second, time.Minute
	// abandoned is the age from which a request is only looked at when its Machine's status
	// changes: its kubelet has sent another one. Source: certificateWaitTimeout in client-go's
	// util/certificate.
	abandoned = 15 * time.Minute
)

// Reconcile decides one request.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	object := &certificatesv1.CertificateSigningRequest{}
	if err := r.requests.Get(ctx, req.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	request := csr.Read(object)
	if isDecided(object) || !request.IsKubelets() {
		return ctrl.Result{}, nil
	}
	facts, about, err := r.facts.read(ctx, object, request, r.Clock.Now())
	if err != nil {
		return ctrl.Result{}, err
	}
	switch decision := csr.Decide(request, facts); decision.Verdict {
	case csr.Wait:
		log.FromContext(ctx).V(1).Info("A certificate request waits", "for", decision.Message)
		return ctrl.Result{RequeueAfter: recheckAfter(request, facts.Now.Sub(object.CreationTimestamp.Time))}, nil
	case csr.Approve, csr.Deny:
		err = r.write(ctx, object, decision)
		if apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: requeue.Soon}, nil
		}
		if err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		r.tell(object, about, decision)
	case csr.Ignore:
	}
	return ctrl.Result{}, nil
}

// recheckAfter is when a request of this age that waits is looked at again; zero for never.
func recheckAfter(request csr.Request, age time.Duration) time.Duration {
	switch {
	case request.IsFirst():
		// It waits for decisions that are being made.
		return firstRecheck
	case age >= abandoned:
		return 0
	}
	return min(max(age/2, firstRecheck), lastRecheck)
}

// write approves or denies the request, if nobody has written to it since it was read.
func (r *reconciler) write(ctx context.Context, object *certificatesv1.CertificateSigningRequest, d csr.Decision) error {
	condition := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reasonVerified,
		Message: "The request is the machine's own.", LastUpdateTime: metav1.NewTime(r.Clock.Now()),
	}
	if d.Verdict == csr.Deny {
		condition.Type, condition.Reason = certificatesv1.CertificateDenied, d.Rule
		condition.Message = conditions.TruncateMessage(d.Message)
	}
	changed := object.DeepCopy()
	changed.Status.Conditions = append(changed.Status.Conditions, condition)
	if err := r.requests.SubResource("approval").Update(ctx, changed); err != nil {
		return fmt.Errorf("decide on the certificate request: %w", err)
	}
	return nil
}

// tell counts a decision, and tells of a refusal: in an Event about the Machine where there is one,
// else about the request. The Event's action is the rule: those with the same action are one Event.
func (r *reconciler) tell(object *certificatesv1.CertificateSigningRequest, about client.Object, d csr.Decision) {
	r.decided.WithLabelValues(object.Spec.SignerName, string(d.Verdict), d.Rule).Inc()
	if d.Verdict != csr.Deny {
		return
	}
	note := messages.EventNote(fmt.Sprintf("Certificate request %s is denied by rule %s: %s", object.Name, d.Rule, d.Message))
	if about != nil {
		r.machineEvents.Eventf(about, nil, corev1.EventTypeWarning, eventRefused, d.Rule, "%s", note)
		return
	}
	r.requestEvents.Eventf(object, nil, corev1.EventTypeWarning, eventRefused, d.Rule, "%s", note)
}
