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
	// CACertFile names the file that OS_CACERT or clouds.yaml has for the CA bundle. This package
	// reads no files: whoever does puts the contents into Account.CACert.
	CACertFile string
}

// EnvironmentFrom reads the variables that OpenStack's own clients read: OS_AUTH_URL and
// OS_AUTH_TYPE; OS_USERNAME, OS_PASSWORD and OS_USER_DOMAIN_NAME; OS_PROJECT_NAME, OS_PROJECT_ID
// and OS_PROJECT_DOMAIN_NAME. It reads OS_APPLICATION_CREDENTIAL_ID and _SECRET, OS_TOKEN,
// OS_REGION_NAME, OS_INTERFACE and others as well. OS_CACERT can also hold the certificates
// themselves. Where they give neither an address nor credentials, it reads the entry of clouds.yaml
// that OS_CLOUD names, or its only one. OS_REGION_NAME, OS_INTERFACE and OS_CACERT go before that.
// With none of it the Environment is empty. An error says what to change, and shows nothing of what
// clouds.yaml holds.
func EnvironmentFrom(getenv func(string) string, cloudsYAML []byte) (Environment, error) {
	env, authType := fromVariables(getenv)
	name := getenv("OS_CLOUD")
	if env.Account.IdentityEndpoint == "" && !env.Account.hasLogin() && (name != "" || len(cloudsYAML) > 0) {
		entry, entryType, err := fromClouds(cloudsYAML, name)
		if err != nil {
			return Environment{}, fmt.Errorf("clouds.yaml: %w", err)
		}
		entry.Account.Region = cmp.Or(env.Account.Region, entry.Account.Region)
		entry.Account.Interface = cmp.Or(env.Account.Interface, entry.Account.Interface)
		entry.Account.CACert = env.Account.CACert
		entry.CACertFile = cmp.Or(env.CACertFile, entry.CACertFile)
		env, authType = entry, cmp.Or(authType, entryType)
	}
	if env.Account.CACert != "" {
		env.CACertFile = ""
	}
	account, err := env.Account.only(authType)
	if err != nil {
		return Environment{}, err
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
	return env, first("OS_AUTH_TYPE")
}

// fromClouds returns an entry of clouds.yaml, the only one where no name is given, and how it wants
// to log in.
//
// The parser of gophercloud is not used, only its types: it also reads this process's variables,
// and every file that the YAML names, which a user's Secret must not make the driver do.
func fromClouds(raw []byte, name string) (env Environment, authType string, err error) {
	var file clouds.Clouds
	if err := yaml.Unmarshal(raw, &file); err != nil {
		return env, "", unreadable(err)
	}
	if name == "" && len(file.Clouds) == 1 {
		for only := range file.Clouds {
			name = only
		}
	}
	cloud, has := file.Clouds[name]
	if name == "" {
		return env, "", errors.New("holds several clouds, or none: say which by OS_CLOUD, or by the key cloud of a Secret")
	}
	if !has {
		return env, "", errors.New("has no cloud of the name that is asked for")
	}
	if err := supported(cloud); err != nil {
		return env, "", err
	}
	if cloud.RegionName == "" && len(cloud.Regions) == 1 {
		cloud.RegionName = cloud.Regions[0].Name
	}
	auth := cloud.AuthInfo
	env.CACertFile = cloud.CACertFile
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
	env.Account = env.Account.withDefaultDomain(auth.DefaultDomain)
	return env, string(cloud.AuthType), nil
}

// supported returns what keeps an entry of clouds.yaml from being used.
func supported(cloud clouds.Cloud) error {
	switch {
	case cloud.AuthInfo == nil || cloud.AuthInfo.AuthURL == "":
		return errors.New("auth.auth_url must be set: profiles of vendors are not read")
	case cloud.Verify != nil && !*cloud.Verify:
		return errors.New("verify must not be false: give the CA of the cloud as cacert")
	case cloud.ClientCertFile != "" || cloud.ClientKeyFile != "":
		return errors.New("client certificates (cert, key) are not supported")
	case cloud.AuthInfo.SystemScope != "":
		return errors.New("system_scope is not supported: machines belong to a project")
	}
	return nil
}

// line finds where a YAML parser stopped.
var line = regexp.MustCompile(`line \d+`)

// unreadable says where YAML is wrong. The parser's own words would show what stands there: a
// password that begins with '*' is an unknown anchor to it.
func unreadable(err error) error {
	if at := line.FindString(err.Error()); at != "" {
		return errors.New("cannot be read at " + at)
	}
	return errors.New("cannot be read")
}

// interfaceOf reads both spellings of an interface: public and publicURL.
func interfaceOf(text string) string { return strings.TrimSuffix(text, "URL") }

// withDefaultDomain puts the domain that is meant where none is given into both places.
func (a Account) withDefaultDomain(id string) Account {
	a = a.withDomains()
	if id != "" && a.UserDomainName == "" && a.UserDomainID == "" {
		a.UserDomainID = id
	}
	if id != "" && a.ProjectDomainName == "" && a.ProjectDomainID == "" {
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

// bundled returns what Secrets that are given as a whole hold under names that are no field's: OS_*
// variables, or a clouds.yaml with the name of its entry as cloud and its CA bundle as cacert, as
// Cluster API keeps them. What cannot be used is wrong only if it is needed.
func bundled(secrets map[string][]byte, needed bool, found *findings) Account {
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
	env, err := EnvironmentFrom(getenv, cloudsYAML)
	if err == nil && env.CACertFile != "" {
		err = errors.New("the CA bundle is named by its file, which is not read: put the certificates into the Secret, as cacert")
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
