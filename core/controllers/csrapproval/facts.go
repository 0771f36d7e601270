package csrapproval

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap/csr"
	"github.com/millwright-dev/millwright/core/bootstrap/token"
	"github.com/millwright-dev/millwright/core/coexistence"
)

// factReader reads what requests are decided by. What may have changed since is read live.
type factReader struct {
	// machines is the cache of Machines, liveMachines their API server.
	machines, liveMachines client.Reader
	// requests is the cache of the cluster of the Nodes, live its API server.
	requests, live client.Reader
}

// read returns the facts of a request, and the Machine that it is about; nil where there is none.
func (f factReader) read(ctx context.Context, object *certificatesv1.CertificateSigningRequest, r csr.Request, now time.Time) (
	csr.Facts, client.Object, error,
) {
	facts := csr.Facts{Now: now}
	node, subject, err := f.nodeAndMachine(ctx, r.Node())
	if err != nil {
		return facts, nil, err
	}
	facts.NodeExists, facts.SubjectIsMachines = node != nil, subject != nil
	requestor := subject
	switch {
	case r.IsFirst():
		if requestor, err = f.readToken(ctx, object, r, subject, &facts); err != nil {
			return facts, nil, err
		}
	case r.RequestorNode() == "":
		// Whoever it is, it is no Machine.
		requestor = nil
	case r.RequestorNode() != r.Node():
		if node, requestor, err = f.nodeAndMachine(ctx, r.RequestorNode()); err != nil {
			return facts, nil, err
		}
	}
	if requestor != nil {
		facts.Machine = &csr.Machine{
			Key: client.ObjectKeyFromObject(requestor), Deleting: !requestor.DeletionTimestamp.IsZero(),
			NodeIsConfirmed: isNodeOf(requestor, node), Addresses: requestor.Status.Addresses,
		}
		return facts, requestor, nil
	}
	if subject != nil {
		return facts, subject, nil
	}
	return facts, nil, nil
}

// isNodeOf says whether the Machine's status names the Node.
func isNodeOf(m *clusterv1alpha1.Machine, node *corev1.Node) bool {
	ref := m.Status.NodeRef
	return ref != nil && node != nil && ref.Name == node.Name && ref.UID == node.UID
}

// nodeAndMachine returns the Node of a name, and the Machine that it is of: that which its
// annotation names, or one of the same name. Neither is there where there is
// none. A kubelet can write the annotation: what counts is that the Machine's status names the
// Node.
func (f factReader) nodeAndMachine(ctx context.Context, name string) (*corev1.Node, *clusterv1alpha1.Machine, error) {
	if name == "" {
		return nil, nil, nil
	}
	node := &corev1.Node{}
	err := f.live.Get(ctx, client.ObjectKey{Name: name}, node)
	if client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("read Node %s: %w", name, err)
	}
	if err != nil {
		node = nil
	}
	if node != nil {
		namespace, machine, named := strings.Cut(node.Annotations[clusterv1alpha1.NodeMachineAnnotation], "/")
		if named {
			m, err := f.machine(ctx, types.NamespacedName{Namespace: namespace, Name: machine})
			return node, m, err
		}
	}
	named, err := f.named(ctx, name)
	if err != nil || len(named) == 0 {
		return node, nil, err
	}
	m, err := f.machine(ctx, client.ObjectKeyFromObject(&named[0]))
	return node, m, err
}

// named are the Machines of a name, but for those that have a Node of another. The one that had the
// name first is in front.
func (f factReader) named(ctx context.Context, name string) ([]clusterv1alpha1.Machine, error) {
	var list clusterv1alpha1.MachineList
	if err := f.machines.List(ctx, &list, client.MatchingFields{nameIndex: name}); err != nil {
		return nil, fmt.Errorf("list Machines of the name %s: %w", name, err)
	}
	all := list.Items
	for i := range all {
		if isOlder(&all[i], &all[0]) {
			all[0], all[i] = all[i], all[0]
		}
	}
	return all, nil
}

func isOlder(a, b *clusterv1alpha1.Machine) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

// machine reads a Machine; nil where there is none, or another system works on it.
func (f factReader) machine(ctx context.Context, key types.NamespacedName) (*clusterv1alpha1.Machine, error) {
	m := &clusterv1alpha1.Machine{}
	err := f.liveMachines.Get(ctx, key, m)
	if apierrors.IsNotFound(err) || err == nil && coexistence.IsLeftAlone(m) {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read Machine %s: %w", key, err)
	}
	return m, nil
}

// readToken adds to the facts the token of a first request. It returns the Machine that the token
// belongs to; nil where that is gone. This is nearly always subject, the Machine whose name is
// asked for, which is then not read again.
func (f factReader) readToken(
	ctx context.Context, object *certificatesv1.CertificateSigningRequest, r csr.Request, subject *clusterv1alpha1.Machine, facts *csr.Facts,
) (*clusterv1alpha1.Machine, error) {
	secret := &corev1.Secret{}
	err := f.live.Get(ctx, token.Key(r.TokenID()), secret)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read the bootstrap token: %w", err)
	}
	t, err := token.Read(secret)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // it is no token of a machine
	}
	facts.Token = &csr.Token{CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt}
	if err := f.countRequests(ctx, object, facts); err != nil {
		return nil, err
	}
	m := subject
	if m == nil || client.ObjectKeyFromObject(m) != t.Owner.Machine {
		m, err = f.machine(ctx, t.Owner.Machine)
	}
	if err != nil || m == nil || ptr.Deref(m.Spec.MachineUID, "") != t.Owner.UID {
		return nil, err
	}
	facts.NameTakenBy, err = f.nameTakenBy(ctx, m)
	return m, err
}

// nameTakenBy names another Machine that had the Machine's name first; empty for none.
func (f factReader) nameTakenBy(ctx context.Context, m *clusterv1alpha1.Machine) (string, error) {
	named, err := f.named(ctx, m.Name)
	for i := range named {
		other := &named[i]
		if other.UID != m.UID && other.DeletionTimestamp.IsZero() && (hasNodeOfName(other) || isOlder(other, m)) {
			return client.ObjectKeyFromObject(other).String(), nil
		}
	}
	return "", err
}

// hasNodeOfName says whether the Machine's status names a Node that has its name. That one may be
// gone: its kubelet still has a certificate.
func hasNodeOfName(m *clusterv1alpha1.Machine) bool {
	return m.Status.NodeRef != nil && m.Status.NodeRef.Name == m.Name
}

// countRequests adds to the facts what other requests were made with the token of this one. Those
// that were denied have given nobody a certificate.
func (f factReader) countRequests(ctx context.Context, object *certificatesv1.CertificateSigningRequest, facts *csr.Facts) error {
	requests, err := f.requestsOf(ctx, object.Spec.Username)
	if err != nil {
		return err
	}
	for i := range requests {
		other := &requests[i]
		if other.Spec.SignerName != object.Spec.SignerName || isDenied(other) {
			continue
		}
		facts.Requests++
		if isDecided(other) || other.Name == object.Name {
			continue
		}
		order := cmp.Or(other.CreationTimestamp.Compare(object.CreationTimestamp.Time), strings.Compare(other.Name, object.Name))
		facts.Younger, facts.Older = facts.Younger || order > 0, facts.Older || order < 0
	}
	return nil
}

// isDenied says whether somebody has denied the request.
func isDenied(request *certificatesv1.CertificateSigningRequest) bool {
	return hasCondition(request, certificatesv1.CertificateDenied)
}

// isApproved says whether somebody has approved the request, and its signer has not given it up.
func isApproved(request *certificatesv1.CertificateSigningRequest) bool {
	return hasCondition(request, certificatesv1.CertificateApproved) && !hasCondition(request, certificatesv1.CertificateFailed)
}

func hasCondition(request *certificatesv1.CertificateSigningRequest, typ certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(request.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == typ })
}

// requestsOf are the requests of a requestor. They are only read.
func (f factReader) requestsOf(ctx context.Context, requestor string) ([]certificatesv1.CertificateSigningRequest, error) {
	var list certificatesv1.CertificateSigningRequestList
	if err := f.requests.List(ctx, &list, client.MatchingFields{requestorIndex: requestor}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the requests of %s: %w", requestor, err)
	}
	return list.Items, nil
}
