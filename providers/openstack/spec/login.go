package spec

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"slices"
	"strings"
)

// defaultDomainID is the domain that Keystone comes with, and the one that its other clients fall
// back to.
const defaultDomainID = "default"

// resolve puts the account together from the spec's fields, Secrets that are given as a whole, and
// the environment. doc.go says by which rules.
func (f *fields) resolve(secrets map[string][]byte, env Environment, found *findings) Account {
	own := f.account(found)
	own.check(found)
	bundle := bundled(secrets, !own.hasLogin(), env.AllowUnverified, found)
	account := Account{
		IdentityEndpoint: cmp.Or(own.IdentityEndpoint, bundle.IdentityEndpoint),
		CACert:           cmp.Or(own.CACert, bundle.CACert, env.Account.CACert),
	}
	if own.TrustID != "" && !own.hasLogin() {
		found.suspect("trustID", "is of no use without its trustee's credentials: give them beside it, or leave it out")
	}
	switch {
	case own.hasLogin():
		account.logIn(own, own, bundle)
	case bundle.hasLogin():
		if own.IdentityEndpoint != "" && bundle.IdentityEndpoint != "" && !sameEndpoint(own.IdentityEndpoint, bundle.IdentityEndpoint) {
			found.add("identityEndpoint", "is not the one that the credentials in the Secret are for: leave it out, or give credentials in the spec")
		}
		account.logIn(bundle, own, bundle)
		if own.ClientCert != "" || own.ClientKey != "" {
			account.ClientCert, account.ClientKey = own.ClientCert, own.ClientKey
		}
	case env.Account.hasLogin():
		account.borrow(env.Account, own, bundle, f.projectField(), found)
	default:
		found.suspect("username", "no credentials are given: set username and password, applicationCredentialID and "+
			"applicationCredentialSecret, or tokenId, here or in a Secret, or give them to the driver")
	}
	account.IdentityEndpoint = cmp.Or(account.IdentityEndpoint, env.Account.IdentityEndpoint)
	if account.IdentityEndpoint == "" {
		found.suspect("identityEndpoint", "must be set, here, in a Secret or in the driver's environment")
	}
	for _, layer := range []Account{own, bundle, env.Account} {
		// Where another cloud is named, what was given for this one says nothing.
		if layer.IdentityEndpoint == "" || sameEndpoint(layer.IdentityEndpoint, account.IdentityEndpoint) {
			account.Region = cmp.Or(account.Region, layer.Region)
			account.Interface = cmp.Or(account.Interface, layer.Interface)
		}
	}
	return account.normal()
}

// borrow takes the credentials of the environment, if they may be sent where the spec and its
// Secrets want to go. projectField is the one by which the spec names the project.
func (a *Account) borrow(env, own, bundle Account, projectField string, found *findings) {
	if a.IdentityEndpoint != "" && !sameEndpoint(a.IdentityEndpoint, env.IdentityEndpoint) {
		if validEndpoint(a.IdentityEndpoint) {
			found.suspect("identityEndpoint", "is not the one that the driver's own credentials are for: leave it out, or give credentials for it")
		}
		return
	}
	if strings.TrimSpace(a.CACert) != strings.TrimSpace(env.CACert) {
		found.suspect("caCert", "must not be set for the driver's own credentials: leave it out, or give credentials")
	}
	if own.ClientCert != "" || own.ClientKey != "" {
		found.suspect("clientCert", "must not be set for the driver's own credentials: leave it and clientKey out, or give credentials")
	}
	a.IdentityEndpoint, a.CACert = env.IdentityEndpoint, env.CACert
	a.logIn(env, own, bundle, env)
	bound := env.withDomains()
	if env.Method() != MethodApplicationCredential || !a.hasProject() {
		return
	}
	field := "projectID"
	if a.ProjectID == "" {
		field = "projectName"
	}
	if a.ProjectID != bound.ProjectID || a.ProjectName != bound.ProjectName {
		found.suspect(cmp.Or(projectField, field), "cannot be chosen: the driver's own credentials are an application credential, which belongs to one project; leave it out")
	}
}

// logIn takes the credentials of one party, and the project of the first that names one.
func (a *Account) logIn(by Account, projects ...Account) {
	by = by.withDomains()
	a.Username, a.UserID, a.Password, a.Token = by.Username, by.UserID, by.Password, by.Token
	a.UserDomainName, a.UserDomainID = by.UserDomainName, by.UserDomainID
	a.ApplicationCredentialID, a.ApplicationCredentialName = by.ApplicationCredentialID, by.ApplicationCredentialName
	a.ApplicationCredentialSecret, a.TrustID = by.ApplicationCredentialSecret, by.TrustID
	a.ClientCert, a.ClientKey, a.Verify = by.ClientCert, by.ClientKey, by.Verify
	at := slices.IndexFunc(projects, Account.hasProject)
	if at < 0 {
		return
	}
	of := projects[at].withDomains()
	a.ProjectName, a.ProjectID = of.ProjectName, of.ProjectID
	a.ProjectDomainName, a.ProjectDomainID = of.ProjectDomainName, of.ProjectDomainID
	if a.ProjectDomainName == "" && a.ProjectDomainID == "" {
		a.ProjectDomainName, a.ProjectDomainID = by.ProjectDomainName, by.ProjectDomainID
	}
}

func (a Account) hasLogin() bool { return a.hasUser() || len(a.methods()) > 0 }

// withDomains turns the domain that stands for both into that of the user and that of the project.
func (a Account) withDomains() Account {
	if a.UserDomainName == "" && a.UserDomainID == "" {
		a.UserDomainName, a.UserDomainID = a.DomainName, a.DomainID
	}
	if a.ProjectDomainName == "" && a.ProjectDomainID == "" {
		a.ProjectDomainName, a.ProjectDomainID = a.DomainName, a.DomainID
	}
	a.DomainName, a.DomainID = "", ""
	return a
}

// normal is the account as Account says that Read returns it.
func (a Account) normal() Account {
	a.IdentityEndpoint = strings.TrimRight(a.IdentityEndpoint, "/")
	a.CACert = strings.TrimSpace(a.CACert)
	a.Interface = cmp.Or(a.Interface, InterfacePublic)
	if a.ProjectID != "" {
		a.ProjectName = ""
	}
	// An application credential has its project: only a domain that is named with it is compared.
	isOpen := a.ProjectDomainName == "" && a.ProjectDomainID == "" && a.Method() == MethodApplicationCredential
	if a.ProjectDomainName == "" && a.ProjectDomainID == "" && !isOpen {
		a.ProjectDomainName, a.ProjectDomainID = a.UserDomainName, a.UserDomainID
	}
	a.UserDomainName, a.UserDomainID = domainOf(a.Username, a.UserDomainName, a.UserDomainID)
	if !isOpen {
		a.ProjectDomainName, a.ProjectDomainID = domainOf(a.ProjectName, a.ProjectDomainName, a.ProjectDomainID)
	}
	return a
}

// domainOf is the domain that a name needs: one, by its id if there is one, and none without a
// name.
func domainOf(qualified, name, id string) (domainName, domainID string) {
	switch {
	case qualified == "":
		return "", ""
	case id != "":
		return "", id
	case name != "":
		return name, ""
	}
	return "", defaultDomainID
}

// check finds what is wrong with what one party gives. The fields are those of the spec.
func (a Account) check(found *findings) {
	if a.IdentityEndpoint != "" && !validEndpoint(a.IdentityEndpoint) {
		found.add("identityEndpoint", "must be the URL of Keystone, such as https://cloud.example.com:5000/v3, without a user, a query or a fragment")
	}
	if !slices.Contains([]string{"", InterfacePublic, InterfaceInternal, InterfaceAdmin}, a.Interface) {
		found.add("interface", "must be public, internal or admin")
	}
	if a.CACert != "" && !validCertificates(a.CACert) {
		found.add("caCert", "must be certificates in PEM, each from BEGIN CERTIFICATE to END CERTIFICATE")
	}
	if (a.ClientCert == "") != (a.ClientKey == "") {
		found.suspect("clientKey", "must be set beside clientCert, and clientCert beside it")
	} else if _, err := tls.X509KeyPair([]byte(a.ClientCert), []byte(a.ClientKey)); a.ClientCert != "" && err != nil {
		found.add("clientCert", "must be a certificate in PEM, and clientKey its private key")
	}
	if a.Username != "" && a.UserID != "" {
		found.add("userID", "is given beside username: keep one of the two")
	}
	ways := a.methods()
	if len(ways) > 1 {
		given := a.loginFields()
		found.add(given[0], "is one of more than one way to log in (%s): keep username and password, applicationCredentialID and "+
			"applicationCredentialSecret, or tokenId", strings.Join(given, ", "))
		return
	}
	switch a.Method() {
	case MethodPassword:
		a.checkPassword(found)
	case MethodApplicationCredential:
		a.checkApplicationCredential(found)
	}
}

func (a Account) checkPassword(found *findings) {
	if a.Password == "" {
		found.suspect("password", "must be set beside a user")
	}
	if !a.hasUser() {
		found.suspect("username", "must be set beside password; or userID")
	}
}

func (a Account) checkApplicationCredential(found *findings) {
	if a.ApplicationCredentialSecret == "" {
		found.suspect("applicationCredentialSecret", "must be set beside applicationCredentialID or applicationCredentialName")
	}
	switch {
	case a.ApplicationCredentialID == "" && a.ApplicationCredentialName == "":
		found.suspect("applicationCredentialID", "must be set beside applicationCredentialSecret")
	case a.ApplicationCredentialID != "" && a.ApplicationCredentialName != "":
		found.add("applicationCredentialName", "is given beside applicationCredentialID: keep the id")
	case a.ApplicationCredentialName != "" && !a.hasUser():
		found.suspect("username", "must be set beside applicationCredentialName: its name is its user's; or give applicationCredentialID")
	}
}

// loginFields are the names of those fields of a login that are given.
func (a Account) loginFields() []string {
	var given []string
	for _, field := range []struct{ name, value string }{
		{"applicationCredentialID", a.ApplicationCredentialID},
		{"applicationCredentialName", a.ApplicationCredentialName},
		{"applicationCredentialSecret", a.ApplicationCredentialSecret},
		{"tokenId", a.Token},
		{"username", a.Username},
		{"userID", a.UserID},
		{"password", a.Password},
	} {
		if field.value != "" {
			given = append(given, field.name)
		}
	}
	return given
}

// alias returns the value of a field that has two names, and finds both given and different.
func (f *findings) alias(name, value, older, olderValue string) string {
	if value != "" && olderValue != "" && value != olderValue {
		f.add(older, "is not the same as %s, which stands for the same: keep %s", name, name)
	}
	return cmp.Or(value, olderValue)
}

func validEndpoint(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" &&
		!u.ForceQuery && u.Fragment == ""
}

// sameEndpoint says whether two URLs lead to one Keystone: by scheme, host, port and path, but for
// the version at its end, which some leave out. In doubt they do not.
func sameEndpoint(a, b string) bool {
	if !validEndpoint(a) || !validEndpoint(b) {
		return false
	}
	return endpointRoot(a) == endpointRoot(b)
}

func endpointRoot(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	path = strings.TrimRight(strings.TrimSuffix(path, "/v3"), "/")
	return u.Scheme + "://" + strings.ToLower(u.Host) + path
}

// validCertificates says whether a text holds at least one certificate in PEM, and nothing else in
// PEM, such as a key.
func validCertificates(text string) bool {
	rest, n := []byte(text), 0
	for {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			return n > 0
		}
		if _, err := x509.ParseCertificate(block.Bytes); block.Type != "CERTIFICATE" || err != nil {
			return false
		}
		n++
	}
}
