package session

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/proto/redact"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

// authOptions says to Keystone who logs in, and for what. Where both the id and the name of a
// domain are known, the id counts.
func authOptions(a spec.Account) *tokens.AuthOptions {
	o := &tokens.AuthOptions{}
	switch a.Method() {
	case spec.MethodToken:
		o.TokenID = a.Token
	case spec.MethodApplicationCredential:
		// Its project is fixed, and Keystone refuses a login that names one.
		o.ApplicationCredentialID = a.ApplicationCredentialID
		o.ApplicationCredentialSecret = a.ApplicationCredentialSecret
		if a.ApplicationCredentialID == "" {
			o.ApplicationCredentialName = a.ApplicationCredentialName
			named(o, a)
		}
		return o
	default:
		o.Password = a.Password
		named(o, a)
	}
	o.Scope = scope(a)
	return o
}

// named names the user.
func named(o *tokens.AuthOptions, a spec.Account) {
	if a.UserID != "" {
		o.UserID = a.UserID
		return
	}
	o.Username = a.Username
	o.DomainID, o.DomainName = domain(a.UserDomainID, a.UserDomainName, a)
}

// scope names the project; empty where the credentials themselves decide.
func scope(a spec.Account) tokens.Scope {
	switch {
	case a.TrustID != "":
		return tokens.Scope{TrustID: a.TrustID}
	case a.ProjectID != "":
		return tokens.Scope{ProjectID: a.ProjectID}
	case a.ProjectName == "":
		return tokens.Scope{}
	}
	s := tokens.Scope{ProjectName: a.ProjectName}
	s.DomainID, s.DomainName = domain(a.ProjectDomainID, a.ProjectDomainName, a)
	return s
}

// domain returns the id or the name of a domain, those of the account where it has none of its own.
func domain(ownID, ownName string, a spec.Account) (id, name string) {
	if ownID == "" && ownName == "" {
		ownID, ownName = a.DomainID, a.DomainName
	}
	if ownID != "" {
		return ownID, ""
	}
	return "", ownName
}

// refused returns the contract's error for a login that did not work. It is a refusal where another
// try would end the same.
func refused(err error, a spec.Account) error {
	answer, is := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err)
	if !is {
		return fmt.Errorf("log in: %w", Explain(err))
	}
	answer.Body = []byte(secretsOf(a).Text(string(answer.Body)))
	switch said := readWords(answer.Body); answer.Actual {
	case http.StatusBadRequest:
		if isOfProxy(answer, said) {
			break
		}
		// The credentials can be mended without the spec.
		return &refusal{fmt.Errorf("log in: %w", sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID, said.or(answer)))}
	case http.StatusUnauthorized, http.StatusForbidden:
		return &refusal{fmt.Errorf("log in: %w", Explain(answer))}
	case http.StatusNotFound:
		// Application credentials and tokens that Keystone does not know are not found.
		reason := driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID
		var fields []sdk.ErrorOption
		if said.kind == "" {
			reason = driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND
			fields = append(fields, sdk.WithField("identityEndpoint", "There is no Keystone v3 at this URL."))
		}
		return &refusal{fmt.Errorf("log in: %w", sdk.NewError(reason, said.or(answer), fields...))}
	}
	return fmt.Errorf("log in: %w", Explain(answer))
}

// secretsOf are those of an account, which may be the driver's own: nobody else knows of them.
func secretsOf(a spec.Account) *redact.Secrets {
	return redact.Of(&driverv1alpha1.ListMachinesRequest{Provider: &driverv1alpha1.ProviderContext{Secrets: map[string][]byte{
		"password": []byte(a.Password), "tokenId": []byte(a.Token), "applicationCredentialSecret": []byte(a.ApplicationCredentialSecret),
		"clientKey": []byte(a.ClientKey),
	}}})
}
