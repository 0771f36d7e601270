package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strconv"
)

// Account is who asks which cloud. Accounts compare with ==. It redacts itself wherever it is
// formatted, logged or marshalled; only its fields hold what must not be shown.
//
// An account that Read returns is complete and normal, so that one login is one account however it
// was written down. DomainName and DomainID are empty: they have become the domains of user and
// project. A name is empty where there is an id. A domain is there exactly with the name that it
// qualifies. Where nothing else is known, it is the one with the id "default"; that of the project
// of an application credential is empty then. Interface is set.
type Account struct {
	// IdentityEndpoint is Keystone's URL, with or without its version, and with no slash at its
	// end.
	IdentityEndpoint string
	// Region is empty where the cloud has only one.
	Region string
	// Interface says which of a service's endpoints to take from the catalogue: InterfacePublic,
	// InterfaceInternal or InterfaceAdmin.
	Interface string

	// DomainName and DomainID stand for the domains of user and project, where those are not given.
	DomainName, DomainID               string
	UserDomainName, UserDomainID       string
	ProjectDomainName, ProjectDomainID string

	// Username needs a domain, UserID does not.
	Username, UserID, Password string
	// ProjectName needs a domain, ProjectID does not. An application credential has its project
	// already, and Keystone takes none at such a login: then they only say which it should be.
	ProjectName, ProjectID string
	// Token is a token that Keystone has issued. It ends, and cannot be renewed.
	Token string
	// An application credential is known by its id, or by its name and its user.
	ApplicationCredentialID, ApplicationCredentialName, ApplicationCredentialSecret string
	// TrustID is a trust whose trustee the user is. It decides the project.
	TrustID string
	// CACert are PEM certificates by which the cloud's are verified; empty for the system's.
	CACert string
	// ClientCert and ClientKey, in PEM, are what the client shows to the cloud's servers; both or
	// none.
	ClientCert, ClientKey string
	// Verify is VerifyNone where the cloud's certificates are not verified, else empty.
	Verify string
}

// The interfaces of a service.
const (
	InterfacePublic   = "public"
	InterfaceInternal = "internal"
	InterfaceAdmin    = "admin"
)

// VerifyNone has an account's cloud not verified: who is in between can read all.
const VerifyNone = "none"

// Method is how an account logs in.
type Method string

// The methods.
const (
	// MethodNone: the account holds no credentials. Read never returns such a one.
	MethodNone Method = ""
	// MethodPassword: user and password.
	MethodPassword Method = "password"
	// MethodApplicationCredential: an application credential. Its project is fixed: Keystone
	// refuses a login that names one.
	MethodApplicationCredential Method = "application credential"
	// MethodToken: a token, for another project too.
	MethodToken Method = "token"
)

// Method returns how the account logs in. Of an account that Read returned there is only one way.
func (a Account) Method() Method {
	ways := a.methods()
	if len(ways) == 0 {
		return MethodNone
	}
	return ways[0]
}

// methods returns all ways to log in that the account has anything for. A user is part of one by
// name of application credential.
func (a Account) methods() []Method {
	var ways []Method
	if a.ApplicationCredentialID != "" || a.ApplicationCredentialName != "" || a.ApplicationCredentialSecret != "" {
		ways = append(ways, MethodApplicationCredential)
	}
	if a.Token != "" {
		ways = append(ways, MethodToken)
	}
	if a.Password != "" || a.hasUser() && a.ApplicationCredentialName == "" {
		ways = append(ways, MethodPassword)
	}
	return ways
}

func (a Account) hasUser() bool { return a.Username != "" || a.UserID != "" }

func (a Account) hasProject() bool { return a.ProjectName != "" || a.ProjectID != "" }

// Key is the same for equal accounts and no others: a SHA-256 over all fields, in hexadecimal. It
// can be a map's key where no secret should lie. It is no secret itself, but who knows it can try
// passwords against it: do not log it.
func (a Account) Key() string {
	hash := sha256.New()
	for _, field := range reflect.ValueOf(a).Fields() {
		// With its length, so that no field's end can be another's beginning.
		_, _ = fmt.Fprintf(hash, "%d:%s", field.Len(), field.String())
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// String says how the account logs in, and nothing else of it.
func (a Account) String() string {
	if a.Method() == MethodNone {
		return "account(redacted)"
	}
	return "account(" + string(a.Method()) + ", redacted)"
}

// Format writes String, whatever the verb: %#v and %x would show the fields otherwise.
func (a Account) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, a.String()) }

// LogValue is String for slog.
func (a Account) LogValue() slog.Value { return slog.StringValue(a.String()) }

// MarshalJSON returns String: slog's JSON handler marshals what lies within other values.
func (a Account) MarshalJSON() ([]byte, error) { return []byte(strconv.Quote(a.String())), nil }
