// Package token says what a machine's bootstrap token is: its id, the Secret that holds it, and how
// long it lasts. It is pure. The controller of Machines reads and writes the Secrets;
// core/lifecycle/create.go decides when one is minted, token.go there when it is extended and
// deleted.
//
// A token is a Secret of type bootstrap.kubernetes.io/token in kube-system of the cluster of the
// Nodes (https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/). Its id follows
// from the machine's machineUID. So everybody finds it by one GET: a create that is repeated, the
// next leader, the approver of CSRs and the clean-up. See docs/adr/0027.
package token

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

const (
	// Group is the one group that a token of ours brings, besides those that every token has.
	Group = "system:bootstrappers:millwright"
	// MachineUIDLabel is the Secret's label with the machineUID, by which people find it.
	MachineUIDLabel = "cluster.k8s.io/machine-uid"

	// pastStartup is how long a token outlives the time in which its machine has to join.
	pastStartup = 5 * time.Minute
	// unlimited is how long a token lasts that may be needed for ever: it is extended then.
	unlimited = time.Hour
	// renewBefore is how long before its end a token is extended that is still needed. Clocks
	// differ, and kube-controller-manager deletes tokens by what it has cached of them. A machine
	// that fails for want of a Node has mostly done so before.
	renewBefore = 4 * time.Minute
)

// Owner is the machine that a token belongs to.
type Owner struct {
	// UID is spec.machineUID.
	UID string
	// Machine is the Machine's namespace and name.
	Machine types.NamespacedName
}

// Token is what a Secret holds.
type Token struct {
	ID    string
	Owner Owner
	// CreatedAt is when the Secret was created.
	CreatedAt time.Time
	ExpiresAt time.Time

	secret string
}

// Value is the token as a kubelet presents it. It is a secret.
func (t Token) Value() string { return t.ID + "." + t.secret }

// String is the token's id: a token that somebody prints tells no secret.
func (t Token) String() string { return t.ID }

// GoString is String.
func (t Token) GoString() string { return t.ID }

// ids is how many ids there are: six characters of the digits and lower-case letters.
const ids = 36 * 36 * 36 * 36 * 36 * 36

// ID is the id of the token of the machine with this machineUID. Two machines may have one id; the
// second one waits until the first one's token is gone.
func ID(machineUID string) string {
	sum := sha256.Sum256([]byte("millwright bootstrap token\n" + machineUID))
	// One digit more in front keeps the zeros that would be missing else.
	return strconv.FormatUint(ids+binary.BigEndian.Uint64(sum[:])%ids, 36)[1:]
}

// Key is where the Secret of the token with this id is.
func Key(id string) types.NamespacedName {
	return types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: bootstrapapi.BootstrapTokenSecretPrefix + id}
}

// Lifetime is how long a token lasts from now on, of a machine that has to join within
// startupTimeout; 0 is for ever.
func Lifetime(startupTimeout time.Duration) time.Duration {
	if startupTimeout <= 0 {
		return unlimited
	}
	return startupTimeout + pastStartup
}

// RenewAt is when a token that is still needed has to be extended.
func (t Token) RenewAt() time.Time { return t.ExpiresAt.Add(-renewBefore) }

// NewSecret is the Secret of a new token. The secret part has 16 digits and lower-case letters.
func NewSecret(owner Owner, secret string, expires time.Time) *corev1.Secret {
	key := Key(ID(owner.UID))
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels:      map[string]string{MachineUIDLabel: owner.UID},
			Annotations: map[string]string{clusterv1alpha1.NodeMachineAnnotation: owner.Machine.String()},
		},
		Type: bootstrapapi.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			bootstrapapi.BootstrapTokenDescriptionKey:      []byte("With this the VM of Machine " + owner.Machine.String() + " joins."),
			bootstrapapi.BootstrapTokenIDKey:               []byte(ID(owner.UID)),
			bootstrapapi.BootstrapTokenSecretKey:           []byte(secret),
			bootstrapapi.BootstrapTokenUsageAuthentication: []byte("true"),
			bootstrapapi.BootstrapTokenUsageSigningKey:     []byte("false"),
			bootstrapapi.BootstrapTokenExtraGroupsKey:      []byte(Group),
		},
	}
	SetExpiration(s, expires)
	return s
}

// SetExpiration changes when the token in the Secret expires.
func SetExpiration(s *corev1.Secret, expires time.Time) {
	s.Data[bootstrapapi.BootstrapTokenExpirationKey] = []byte(expires.UTC().Format(time.RFC3339))
}

// OwnerOf is the machine whose token the Secret is, by its label and annotation; the zero value for
// none.
func OwnerOf(s *corev1.Secret) Owner {
	namespace, name, named := strings.Cut(s.Annotations[clusterv1alpha1.NodeMachineAnnotation], "/")
	if uid := s.Labels[MachineUIDLabel]; uid != "" && named {
		return Owner{UID: uid, Machine: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	return Owner{}
}

// Read reads a Secret that the API server holds under Key. Errors say what is wrong with it. They
// hold nothing secret.
func Read(s *corev1.Secret) (Token, error) {
	t := Token{
		ID: string(s.Data[bootstrapapi.BootstrapTokenIDKey]), secret: string(s.Data[bootstrapapi.BootstrapTokenSecretKey]),
		CreatedAt: s.CreationTimestamp.Time, Owner: OwnerOf(s),
	}
	switch {
	case s.Type != bootstrapapi.SecretTypeBootstrapToken:
		return Token{}, fmt.Errorf("it has the type %q, want %q", s.Type, bootstrapapi.SecretTypeBootstrapToken)
	case t.Owner == Owner{}:
		return Token{}, fmt.Errorf("it is no machine's: label %s or annotation %s is missing", MachineUIDLabel, clusterv1alpha1.NodeMachineAnnotation)
	case t.ID != ID(t.Owner.UID) || s.Name != Key(t.ID).Name:
		return Token{}, fmt.Errorf("its %s is not that of machineUID %s", bootstrapapi.BootstrapTokenIDKey, t.Owner.UID)
	case t.secret == "":
		return Token{}, fmt.Errorf("its %s is missing", bootstrapapi.BootstrapTokenSecretKey)
	}
	var err error
	if t.ExpiresAt, err = time.Parse(time.RFC3339, string(s.Data[bootstrapapi.BootstrapTokenExpirationKey])); err != nil {
		return Token{}, errors.New("its " + bootstrapapi.BootstrapTokenExpirationKey + " is missing, or no RFC 3339 time")
	}
	return t, nil
}
