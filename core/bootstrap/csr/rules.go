package csr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	netutils "k8s.io/utils/net"

	"github.com/millwright-dev/millwright/core/bootstrap/token"
)

// The rules, as the condition Denied names them. docs/joining.md says what each is about.
const (
	RuleFormat          = "Format"
	RuleSubject         = "Subject"
	RuleUsages          = "Usages"
	RuleKey             = "Key"
	RuleExtensions      = "Extensions"
	RuleGroups          = "Groups"
	RuleRequestor       = "Requestor"
	RuleSubjectAltNames = "SubjectAltNames"
	RuleTokenUnknown    = "TokenUnknown"
	RuleTokenExpired    = "TokenExpired"
	RuleTokenYounger    = "TokenYounger"
	RuleTokenUsedUp     = "TokenUsedUp"
	RuleMachineGone     = "MachineGone"
	RuleMachineDeleting = "MachineDeleting"
	RuleNodeName        = "NodeName"
	RuleNodeNameTaken   = "NodeNameTaken"
	RuleNodeExists      = "NodeExists"
	RuleNoAddress       = "NoAddress"
	RuleEmailOrURI      = "EmailOrURI"
	RuleServiceName     = "ServiceName"
	RuleDNSName         = "DNSName"
	RuleLocalAddress    = "LocalAddress"
	RuleAddress         = "Address"
)

// maxRequests is how many requests with one token may be approved: a kubelet that starts anew may
// have lost its key.
const maxRequests = 3

// subjectAltNames is the extension that names are in (RFC 5280, 4.2.1.6).
const subjectAltNames = "2.5.29.17"

// Facts are what the API servers say, read when a request is decided. Their zero value says that
// there is nothing.
type Facts struct {
	Now time.Time
	// Token is the one that the request was made with; nil for none that is there.
	Token *Token
	// Requests is how many first requests were made with its token that nobody has denied, with
	// this one.
	Requests int
	// Younger and Older say whether there are undecided ones among them that came later than this
	// one, or before it. A kubelet has the key of its last one alone.
	Younger, Older bool
	// Machine is the token's; for a request of a Node it is that Node's. It is nil where there is
	// none.
	Machine *Machine
	// NodeExists: there is a Node of the name in the subject.
	NodeExists bool
	// SubjectIsMachines: the name in the subject is that of a Machine, or of a Machine's Node.
	SubjectIsMachines bool
	// NameTakenBy names, for people, another Machine with the name of Machine that had it first;
	// empty for none.
	NameTakenBy string
}

// Token is what of a bootstrap token a decision takes.
type Token struct{ CreatedAt, ExpiresAt time.Time }

// Machine is what of a Machine a decision takes.
type Machine struct {
	Key types.NamespacedName
	// Deleting: it is on its way out.
	Deleting bool
	// NodeIsConfirmed: the Machine's status names the requestor's Node, by name and uid.
	NodeIsConfirmed bool
	// Addresses are those that the driver has given.
	Addresses []corev1.NodeAddress
}

// Decision says what becomes of a request.
type Decision struct {
	Verdict Verdict
	// Rule is the name of the rule that a request breaks that is denied. Message says how, or what
	// one waits for. It names nothing that is secret.
	Rule, Message string
}

// Verdict is the kind of a Decision.
type Verdict string

// The verdicts.
const (
	// Ignore: the request is not from a machine.
	Ignore Verdict = "Ignore"
	// Approve: it keeps to all rules.
	Approve Verdict = "Approve"
	// Deny: it breaks a rule, and always will.
	Deny Verdict = "Deny"
	// Wait: whether it keeps to them cannot be told yet.
	Wait Verdict = "Wait"
)

// refusal is the rule that a request breaks, and how; the zero value for none. A refusal without a
// rule is one for now: the request waits.
type refusal struct{ rule, message string }

// Decide decides on a request.
func Decide(r Request, f Facts) Decision {
	if !isMachines(r, f) {
		return Decision{Verdict: Ignore}
	}
	why := brokenRule(r, f)
	switch {
	case why == (refusal{}):
		return Decision{Verdict: Approve}
	case why.rule == "":
		return Decision{Verdict: Wait, Message: why.message}
	}
	return Decision{Verdict: Deny, Rule: why.rule, Message: why.message}
}

// isMachines says whether a request is a machine's, or takes a machine's name. Others are left to
// others.
func isMachines(r Request, f Facts) bool {
	return r.IsKubelets() && (slices.Contains(r.groups, token.Group) || f.Machine != nil || f.SubjectIsMachines)
}

// brokenRule returns the first rule of its kind that a request breaks. The form of a Node's request
// counts once a Machine says that the Node is its own. Before, it may be a Node of others that has
// the name of a Machine.
func brokenRule(r Request, f Facts) refusal {
	if r.node == "" {
		return cmp.Or(r.problem, refusal{RuleSubject, "The subject names no Node."})
	}
	var rules []func(Request, Facts) refusal
	switch {
	case r.IsFirst():
		rules = []func(Request, Facts) refusal{checkForm, checkGroups, checkNoNames, checkToken, checkMachine, checkNodeName}
	case r.signer == certificatesv1.KubeletServingSignerName:
		rules = []func(Request, Facts) refusal{checkRequestor, checkNode, checkForm, checkNames, checkAddresses}
	default:
		rules = []func(Request, Facts) refusal{checkRequestor, checkNode, checkForm, checkNoNames}
	}
	for _, check := range rules {
		if why := check(r, f); why != (refusal{}) {
			return why
		}
	}
	return refusal{}
}

// checkForm: the request is written as a kubelet writes one.
func checkForm(r Request, _ Facts) refusal { return r.problem }

// checkGroups: the token has the groups of one of ours, and no other. A token of others that takes
// a machine's name fails here.
func checkGroups(r Request, _ Facts) refusal {
	got, want := slices.Clone(r.groups), []string{bootstrapapi.BootstrapDefaultGroup, token.Group, "system:authenticated"}
	slices.Sort(got)
	slices.Sort(want)
	if slices.Equal(got, want) {
		return refusal{}
	}
	return refusal{RuleGroups, "The token has to have the groups " + strings.Join(want, ", ") + " and no other."}
}

// checkNoNames: a client's certificate has no names but its subject.
func checkNoNames(r Request, _ Facts) refusal {
	if hasNames(r.content) {
		return refusal{RuleSubjectAltNames, "A client's certificate has no subject alternative names."}
	}
	return refusal{}
}

// checkToken: the token is there, is valid, is older than the request, and was not used too often.
func checkToken(r Request, f Facts) refusal {
	switch id := r.TokenID(); {
	case f.Token == nil:
		return refusal{RuleTokenUnknown, "There is no bootstrap token " + id + ": its machine has joined, was deleted, or did not join in time."}
	case !f.Now.Before(f.Token.ExpiresAt):
		return refusal{RuleTokenExpired, "The bootstrap token " + id + " has expired."}
	case r.createdAt.Before(f.Token.CreatedAt):
		return refusal{RuleTokenYounger, "The request is older than the bootstrap token " + id + "."}
	case f.Requests > maxRequests && f.Older && !f.Younger:
		// A kubelet without a certificate ends after five minutes, and starts with a new key. While
		// nobody decides, more requests pile up than may be approved.
		return refusal{message: "Older requests with the bootstrap token " + id + " are denied first."}
	case f.Requests > maxRequests:
		return refusal{RuleTokenUsedUp, fmt.Sprintf("At most %d requests are possible with one bootstrap token.", maxRequests)}
	}
	return refusal{}
}

// checkMachine: the token's Machine is there, and stays.
func checkMachine(_ Request, f Facts) refusal {
	switch {
	case f.Machine == nil:
		return refusal{RuleMachineGone, "The Machine of the bootstrap token is gone."}
	case f.Machine.Deleting:
		return beingDeleted(f.Machine)
	}
	return refusal{}
}

func beingDeleted(m *Machine) refusal {
	return refusal{RuleMachineDeleting, "Machine " + m.Key.String() + " is being deleted."}
}

// checkNodeName: the Node's name is the Machine's, and nobody else has it.
func checkNodeName(r Request, f Facts) refusal {
	switch {
	case r.node != f.Machine.Key.Name:
		return refusal{RuleNodeName, fmt.Sprintf("The bootstrap token is that of Machine %s, and not for Node %s.", f.Machine.Key, r.node)}
	case f.NameTakenBy != "":
		return refusal{RuleNodeNameTaken, fmt.Sprintf("Node %s is that of Machine %s, which had the name first.", r.node, f.NameTakenBy)}
	case f.NodeExists:
		return refusal{RuleNodeExists, "There is a Node " + r.node + " already."}
	}
	return refusal{}
}

// checkRequestor: a Node asks for itself.
func checkRequestor(r Request, _ Facts) refusal {
	if r.username != nodeUserPrefix+r.node || !slices.Contains(r.groups, nodesGroup) {
		return refusal{RuleRequestor, "Only Node " + r.node + " itself may ask for this certificate."}
	}
	return refusal{}
}

// checkNode: the Machine says that the Node is its own.
func checkNode(r Request, f Facts) refusal {
	switch {
	case f.Machine != nil && f.Machine.NodeIsConfirmed && f.NodeExists:
		return refusal{}
	case f.Machine != nil && f.Machine.Deleting:
		return beingDeleted(f.Machine)
	}
	return refusal{message: "No Machine's status names Node " + r.node + " yet."}
}

// checkNames: a server's certificate has names, and of the kinds that Nodes have.
func checkNames(r Request, _ Facts) refusal {
	switch {
	case len(r.content.EmailAddresses)+len(r.content.URIs) > 0:
		return refusal{RuleEmailOrURI, "The subject alternative names have to be DNS names and IP addresses."}
	case len(r.content.DNSNames)+len(r.content.IPAddresses) == 0:
		return refusal{RuleNoAddress, "At least one DNS name or IP address is needed as a subject alternative name."}
	}
	for _, ip := range r.content.IPAddresses {
		if ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() {
			return refusal{RuleLocalAddress, fmt.Sprintf("The IP address %s is not one of a Node alone.", ip)}
		}
	}
	return checkDNSNames(r.content.DNSNames)
}

// checkDNSNames: no name is one that means something else to whoever connects to it, also where the
// Node or its machine is called so. In most clusters the CA that signs for kubelets is the one by
// which pods know the API server.
func checkDNSNames(names []string) refusal {
	for _, name := range names {
		switch plain := strings.ToLower(strings.TrimSuffix(name, ".")); {
		case isServiceName(plain):
			return refusal{RuleServiceName, fmt.Sprintf("The DNS name %q is one that a Service may have.", name)}
		case plain == "localhost" || strings.HasSuffix(plain, ".localhost"):
			return refusal{RuleLocalAddress, fmt.Sprintf("The DNS name %q is not one of a Node alone.", name)}
		case strings.Contains(plain, "*"):
			return refusal{RuleDNSName, fmt.Sprintf("The DNS name %q is not one of a Node alone.", name)}
		}
	}
	return refusal{}
}

// isServiceName says whether a DNS name in lower case is one by which pods find a Service:
// NAME.NAMESPACE.svc, in whatever domain the cluster has, or a short name of the API server.
// Source: https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/
func isServiceName(name string) bool {
	labels := strings.Split(name, ".")
	return name == "kubernetes" || name == "kubernetes.default" || slices.Contains(labels[min(2, len(labels)):], "svc")
}

// checkAddresses: each name is the Node's, or the driver has given it.
func checkAddresses(r Request, f Facts) refusal {
	if len(f.Machine.Addresses) == 0 {
		if f.Machine.Deleting {
			return beingDeleted(f.Machine)
		}
		return refusal{message: fmt.Sprintf("The status of Machine %s has no addresses yet.", f.Machine.Key)}
	}
	names, ips := []string{r.node}, []string{}
	for _, address := range f.Machine.Addresses {
		switch address.Type {
		case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
			names = append(names, address.Address)
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			ips = append(ips, netutils.ParseIPSloppy(address.Address).String())
		}
	}
	for _, name := range r.content.DNSNames {
		if !slices.Contains(names, name) {
			return refusal{RuleDNSName, fmt.Sprintf("The DNS name %q is neither the Node's nor one that the driver has given Machine %s.", name, f.Machine.Key)}
		}
	}
	for _, ip := range r.content.IPAddresses {
		if !slices.Contains(ips, ip.String()) {
			return refusal{RuleAddress, fmt.Sprintf("The driver has not given Machine %s the IP address %s.", f.Machine.Key, ip)}
		}
	}
	return refusal{}
}
