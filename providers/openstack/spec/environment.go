package spec

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"gopkg.in/yaml.v2"
)

// Environment is what the driver's operator gives for what specs leave out. The zero value gives
// nothing.
type Environment struct {
	// Account may hold any part of an account; Read says what of it is used when.
	Account Account
	// CACertFile, ClientCertFile and ClientKeyFile name the files that variables or clouds.yaml
	// have for the CA bundle and for a client certificate. This package reads no files: whoever
	// does puts the contents into Account.
	CACertFile, ClientCertFile, ClientKeyFile string
	// AllowUnverified lets a clouds.yaml say verify: false, in Secrets too.
	AllowUnverified bool
}

// Sources are where an Environment comes from.
type Sources struct {
	// Getenv reads a variable.
	Getenv func(string) string
	// Clouds, Secure and Public are the contents of clouds.yaml, secure.yaml and
	// clouds-public.yaml, as openstacksdk has them: an entry goes before its profile in Public, and
	// what Secure says of it before both. Each may be empty.
	Clouds, Secure, Public []byte
	// AllowUnverified lets an entry say verify: false.
	AllowUnverified bool
}

// EnvironmentFrom reads the variables that OpenStack's own clients read: OS_AUTH_URL and
// OS_AUTH_TYPE; OS_USERNAME, OS_PASSWORD and OS_USER_DOMAIN_NAME; OS_PROJECT_NAME, OS_PROJECT_ID
// and OS_PROJECT_DOMAIN_NAME. It reads OS_APPLICATION_CREDENTIAL_ID and _SECRET, OS_TOKEN,
// OS_REGION_NAME, OS_INTERFACE and others as well. OS_CACERT can also hold the certificates
// themselves. Where they give neither an address nor credentials, it reads the entry of clouds.yaml
// that OS_CLOUD names, or its only one. OS_REGION_NAME, OS_INTERFACE and OS_CACERT go before that.
// With none of it the Environment is empty; an entry of clouds.yaml has to have a login. An error
// says what to change, and shows nothing of what the files hold.
func EnvironmentFrom(from Sources) (Environment, error) {
	env, authType := fromVariables(from.Getenv)
	name := from.Getenv("OS_CLOUD")
	isEntry := env.Account.IdentityEndpoint == "" && !env.Account.hasLogin() && (name != "" || len(from.Clouds) > 0)
	if isEntry {
		entry, entryType, err := from.entry(name)
		if err != nil {
			return Environment{}, fmt.Errorf("clouds.yaml: %w", err)
		}
		entry.Account.Region = cmp.Or(env.Account.Region, entry.Account.Region)
		entry.Account.Interface = cmp.Or(env.Account.Interface, entry.Account.Interface)
		entry.Account.CACert = env.Account.CACert
		entry.CACertFile = cmp.Or(env.CACertFile, entry.CACertFile)
		entry.ClientCertFile = cmp.Or(env.ClientCertFile, entry.ClientCertFile)
		entry.ClientKeyFile = cmp.Or(env.ClientKeyFile, entry.ClientKeyFile)
		env, authType = entry, cmp.Or(authType, entryType)
	}
	env.AllowUnverified = from.AllowUnverified
	if env.Account.CACert != "" {
		env.CACertFile = ""
	}
	account, err := env.Account.only(authType)
	if err != nil {
		return Environment{}, err
	}
	if isEntry && !account.hasLogin() {
		return Environment{}, errors.New("clouds.yaml: the entry has no login: auth needs username and password, " +
			"application_credential_id and application_credential_secret, or token, there or in secure.yaml")
	}
	env.Account = account
	var found findings
	env.Account.check(&found)
	if len(found) > 0 {
		return Environment{}, fmt.Errorf("OS_* variables or clouds.yaml, in terms of a spec's fields: %w", found)
	}
	return env, nil
}

// fromVariables returns what variables say, and how they want to log in. Of those that mean the
// same, the first goes before.
func fromVariables(getenv func(string) string) (env Environment, authType string) {
	first := func(names ...string) string {
		for _, name := range names {
			if value := getenv(name); value != "" {
				return value
			}
		}
		return ""
	}
	env.Account = Account{
		IdentityEndpoint: first("OS_AUTH_URL"), Region: first("OS_REGION_NAME"),
		Interface:  interfaceOf(first("OS_INTERFACE", "OS_ENDPOINT_TYPE")),
		DomainName: first("OS_DOMAIN_NAME"), DomainID: first("OS_DOMAIN_ID"),
		UserDomainName: first("OS_USER_DOMAIN_NAME"), UserDomainID: first("OS_USER_DOMAIN_ID"),
		ProjectDomainName: first("OS_PROJECT_DOMAIN_NAME"), ProjectDomainID: first("OS_PROJECT_DOMAIN_ID"),
		// OS_USER_NAME is Kubermatic's.
		Username: first("OS_USERNAME", "OS_USER_NAME"), UserID: first("OS_USER_ID", "OS_USERID"), Password: first("OS_PASSWORD"),
		ProjectName: first("OS_PROJECT_NAME", "OS_TENANT_NAME"), ProjectID: first("OS_PROJECT_ID", "OS_TENANT_ID"),
		Token:                       first("OS_TOKEN", "OS_AUTH_TOKEN"),
		ApplicationCredentialID:     first("OS_APPLICATION_CREDENTIAL_ID"),
		ApplicationCredentialName:   first("OS_APPLICATION_CREDENTIAL_NAME"),
		ApplicationCredentialSecret: first("OS_APPLICATION_CREDENTIAL_SECRET"),
		TrustID:                     first("OS_TRUST_ID"),
	}
	env.Account = env.Account.withDefaultDomain(first("OS_DEFAULT_DOMAIN", "OS_DEFAULT_DOMAIN_ID"))
	env.Account.CACert = first("OS_CACERT")
	if !strings.Contains(env.Account.CACert, "-----BEGIN") {
		env.Account.CACert, env.CACertFile = "", env.Account.CACert
	}
	env.ClientCertFile, env.ClientKeyFile = first("OS_CERT"), first("OS_KEY")
	return env, first("OS_AUTH_TYPE")
}

// cloudsFile is what clouds.yaml, secure.yaml or clouds-public.yaml hold.
type cloudsFile struct {
	Clouds map[string]yamlEntry `yaml:"clouds"`
	Public map[string]yamlEntry `yaml:"public-clouds"`
}

// yamlEntry reads an entry into a value, and leaves alone in it what the entry does not have.
type yamlEntry func(into any) error

// UnmarshalYAML implements yaml.Unmarshaler. It keeps the entry unread.
func (e *yamlEntry) UnmarshalYAML(unmarshal func(any) error) error {
	*e = unmarshal
	return nil
}

// entry returns an entry of clouds.yaml, the only one where no name is given, and how it wants to
// log in.
//
// The parser of gophercloud is not used, only its types: it also reads this process's variables,
// and every file that the YAML names, which a user's Secret must not make the driver do.
func (s Sources) entry(name string) (env Environment, authType string, err error) {
	cloud, err := s.cloud(name)
	if err != nil {
		return env, "", err
	}
	if err := s.supported(cloud); err != nil {
		return env, "", err
	}
	if cloud.RegionName == "" && len(cloud.Regions) == 1 {
		cloud.RegionName = cloud.Regions[0].Name
	}
	auth := cloud.AuthInfo
	env.CACertFile, env.ClientCertFile, env.ClientKeyFile = cloud.CACertFile, cloud.ClientCertFile, cloud.ClientKeyFile
	env.Account = Account{
		IdentityEndpoint: auth.AuthURL, Region: cloud.RegionName, Interface: interfaceOf(cmp.Or(cloud.EndpointType, cloud.Interface)),
		DomainName: auth.DomainName, DomainID: auth.DomainID,
		UserDomainName: auth.UserDomainName, UserDomainID: auth.UserDomainID,
		ProjectDomainName: auth.ProjectDomainName, ProjectDomainID: auth.ProjectDomainID,
		Username: auth.Username, UserID: auth.UserID, Password: auth.Password,
		ProjectName: auth.ProjectName, ProjectID: auth.ProjectID,
		Token: auth.Token, TrustID: auth.TrustID,
		ApplicationCredentialID: auth.ApplicationCredentialID, ApplicationCredentialName: auth.ApplicationCredentialName,
		ApplicationCredentialSecret: auth.ApplicationCredentialSecret,
	}
	if cloud.Verify != nil && !*cloud.Verify {
		env.Account.Verify = VerifyNone
	}
	env.Account = env.Account.withDefaultDomain(auth.DefaultDomain)
	return env, string(cloud.AuthType), nil
}

// cloud returns an entry as the three files have it together.
func (s Sources) cloud(name string) (clouds.Cloud, error) {
	var own, secure, public cloudsFile
	for _, file := range []struct {
		name string
		raw  []byte
		into *cloudsFile
	}{{"", s.Clouds, &own}, {"secure.yaml ", s.Secure, &secure}, {"clouds-public.yaml ", s.Public, &public}} {
		if err := yaml.Unmarshal(file.raw, file.into); err != nil {
			return clouds.Cloud{}, unreadable(file.name, err)
		}
	}
	if name == "" && len(own.Clouds) == 1 {
		for only := range own.Clouds {
			name = only
		}
	}
	entry, has := own.Clouds[name]
	switch {
	case name == "":
		return clouds.Cloud{}, errors.New("holds several clouds, or none: say which by OS_CLOUD, or by the key cloud of a Secret")
	case !has:
		return clouds.Cloud{}, errors.New("has no cloud of the name that is asked for")
	case entry == nil:
		entry = func(any) error { return nil }
	}
	var named, merged clouds.Cloud
	if err := entry(&named); err != nil {
		return clouds.Cloud{}, unreadable("", err)
	}
	profile := public.Public[cmp.Or(named.Profile, named.Cloud)]
	if named.Profile != "" && profile == nil {
		return clouds.Cloud{}, errors.New("the entry's profile is not in clouds-public.yaml: put it there, or set auth.auth_url and leave profile out")
	}
	for _, layer := range []yamlEntry{profile, entry, secure.Clouds[name]} {
		if layer == nil {
			continue
		}
		if err := layer(&merged); err != nil {
			return clouds.Cloud{}, unreadable("", err)
		}
	}
	return merged, nil
}

// supported returns what keeps an entry of clouds.yaml from being used.
func (s Sources) supported(cloud clouds.Cloud) error {
	switch {
	case cloud.AuthInfo == nil || cloud.AuthInfo.AuthURL == "":
		return errors.New("auth.auth_url must be set, there or in its profile in clouds-public.yaml")
	case cloud.Verify != nil && !*cloud.Verify && !s.AllowUnverified:
		return errors.New("verify must not be false: give the CA of the cloud as cacert, or run the driver with --insecure-allow-unverified-clouds")
	case cloud.AuthInfo.SystemScope != "":
		return errors.New("system_scope is not supported: machines belong to a project")
	}
	return nil
}

// line finds where a YAML parser stopped.
var line = regexp.MustCompile(`line \d+`)

// unreadable says where YAML is wrong. The parser's own words would show what stands there: a
// password that begins with '*' is an unknown anchor to it.
func unreadable(file string, err error) error {
	if at := line.FindString(err.Error()); at != "" {
		return errors.New(file + "cannot be read at " + at)
	}
	return errors.New(file + "cannot be read")
}

// interfaceOf reads both spellings of an interface: public and publicURL.
func interfaceOf(text string) string { return strings.TrimSuffix(text, "URL") }

// withDefaultDomain puts the domain that is meant where none is given into both places.
func (a Account) withDefaultDomain(id string) Account {
	a = a.withDomains()
	if id != "" && a.UserDomainName == "" && a.UserDomainID == "" {
		a.UserDomainID = id
	}
	if id != "" && a.ProjectDomainName == "" && a.ProjectDomainID == "" && a.Method() != MethodApplicationCredential {
		a.ProjectDomainID = id
	}
	return a
}

// only keeps of an account's credentials those of an auth_type; all where none is said.
func (a Account) only(authType string) (Account, error) {
	kept := a
	kept.Username, kept.UserID, kept.Password, kept.Token = "", "", "", ""
	kept.ApplicationCredentialID, kept.ApplicationCredentialName, kept.ApplicationCredentialSecret = "", "", ""
	switch strings.TrimPrefix(authType, "v3") {
	case "":
		return a, nil
	case "password":
		kept.Username, kept.UserID, kept.Password = a.Username, a.UserID, a.Password
	case "token":
		kept.Token = a.Token
	case "applicationcredential":
		kept.ApplicationCredentialID, kept.ApplicationCredentialSecret = a.ApplicationCredentialID, a.ApplicationCredentialSecret
		if a.ApplicationCredentialID == "" {
			kept.ApplicationCredentialName, kept.Username, kept.UserID = a.ApplicationCredentialName, a.Username, a.UserID
		}
	default:
		return Account{}, errors.New("this auth_type is not supported: use v3password, v3applicationcredential or v3token")
	}
	return kept, nil
}

// bundled returns what Secrets that are given as a whole hold under names that are no field's.
// Those are OS_* variables, or a clouds.yaml with the name of its entry as cloud and its CA bundle
// as cacert, as Cluster API keeps them. A client certificate may be there as cert and key. What
// cannot be used is wrong only if it is needed.
func bundled(secrets map[string][]byte, needed, allowUnverified bool, found *findings) Account {
	get := func(name string) string { return secretText(secrets[name]) }
	cloudsYAML := secrets["clouds.yaml"]
	getenv := func(name string) string {
		switch {
		case name == "OS_CLOUD" && len(cloudsYAML) > 0:
			return cmp.Or(get("cloud"), get(name))
		case name == "OS_CLOUD":
			return ""
		case name == "OS_CACERT":
			return cmp.Or(get("cacert"), get(name))
		}
		return get(name)
	}
	env, err := EnvironmentFrom(Sources{
		Getenv: getenv, Clouds: cloudsYAML, Secure: secrets["secure.yaml"], Public: secrets["clouds-public.yaml"], AllowUnverified: allowUnverified,
	})
	env.Account.ClientCert, env.Account.ClientKey = get("cert"), get("key")
	switch {
	case err != nil:
	case env.CACertFile != "":
		err = errors.New("the CA bundle is named by its file, which is not read: put the certificates into the Secret, as cacert")
	case (env.ClientCertFile != "" || env.ClientKeyFile != "") && (env.Account.ClientCert == "" || env.Account.ClientKey == ""):
		err = errors.New("the client certificate is named by its files, which are not read: put it into the Secret, as cert and key")
	}
	if err == nil {
		return env.Account
	}
	if needed {
		// Written as the contract writes a name with a dot. It is no field, but it is what has to
		// change.
		found.addSecret(`["clouds.yaml"]`, "the credentials in the Secret cannot be used: %v", err)
	}
	return Account{}
}
