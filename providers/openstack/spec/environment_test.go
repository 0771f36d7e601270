package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironmentFrom(t *testing.T) {
	type variables = map[string]string
	one := Account{
		IdentityEndpoint: otherEndpoint, Region: "r1", Interface: "internal",
		Username: "u1", Password: "p1", ProjectName: "t1", UserDomainName: "d1", ProjectDomainID: "d2",
	}
	changed := func(a Account, change func(*Account)) Account {
		change(&a)
		return a
	}
	for name, tc := range map[string]struct {
		variables variables
		clouds    string
		// secure and public are secure.yaml and clouds-public.yaml.
		secure, public string
		want           Environment
	}{
		"nothing": {},
		"a v3 openrc": {
			variables: variables{
				"OS_AUTH_URL": "a", "OS_USERNAME": "u", "OS_PASSWORD": "p", "OS_PROJECT_NAME": "t", "OS_PROJECT_ID": "i", "OS_USER_DOMAIN_NAME": "d",
				"OS_PROJECT_DOMAIN_NAME": "e", "OS_REGION_NAME": "r", "OS_INTERFACE": "publicURL", "OS_IDENTITY_API_VERSION": "3", "OS_AUTH_TYPE": "password",
			},
			want: Environment{Account: Account{
				IdentityEndpoint: "a", Username: "u", Password: "p", ProjectName: "t", ProjectID: "i", UserDomainName: "d", ProjectDomainName: "e",
				Region: "r", Interface: "public",
			}},
		},
		"older names": {
			variables: variables{"OS_AUTH_URL": "a", "OS_USER_NAME": "u", "OS_PASSWORD": "p", "OS_TENANT_NAME": "t", "OS_TENANT_ID": "i", "OS_DOMAIN_NAME": "d", "OS_ENDPOINT_TYPE": "admin"},
			want: Environment{Account: Account{
				IdentityEndpoint: "a", Username: "u", Password: "p", ProjectName: "t", ProjectID: "i", UserDomainName: "d", ProjectDomainName: "d", Interface: "admin",
			}},
		},
		"a domain for what has none": {
			variables: variables{"OS_AUTH_URL": "a", "OS_USER_ID": "u", "OS_PASSWORD": "p", "OS_USER_DOMAIN_ID": "x", "OS_DEFAULT_DOMAIN": "d", "OS_TRUST_ID": "t"},
			want:      Environment{Account: Account{IdentityEndpoint: "a", UserID: "u", Password: "p", UserDomainID: "x", ProjectDomainID: "d", TrustID: "t"}},
		},
		"an application credential": {
			variables: variables{"OS_AUTH_TYPE": "v3applicationcredential", "OS_AUTH_URL": "a", "OS_APPLICATION_CREDENTIAL_ID": "i", "OS_APPLICATION_CREDENTIAL_SECRET": "s", "OS_USERNAME": "left over"},
			want:      Environment{Account: Account{IdentityEndpoint: "a", ApplicationCredentialID: "i", ApplicationCredentialSecret: "s"}},
		},
		"one by name": {
			variables: variables{"OS_AUTH_TYPE": "v3applicationcredential", "OS_AUTH_URL": "a", "OS_APPLICATION_CREDENTIAL_NAME": "n", "OS_APPLICATION_CREDENTIAL_SECRET": "s", "OS_USERNAME": "u", "OS_PASSWORD": "left over"},
			want:      Environment{Account: Account{IdentityEndpoint: "a", ApplicationCredentialName: "n", ApplicationCredentialSecret: "s", Username: "u"}},
		},
		"a token": {
			variables: variables{"OS_AUTH_TYPE": "v3token", "OS_AUTH_URL": "a", "OS_AUTH_TOKEN": "t", "OS_PASSWORD": "left over"},
			want:      Environment{Account: Account{IdentityEndpoint: "a", Token: "t"}},
		},
		"only an address": {variables: variables{"OS_AUTH_URL": "a"}, want: Environment{Account: Account{IdentityEndpoint: "a"}}},
		"a CA by its file": {
			variables: variables{"OS_AUTH_URL": "a", "OS_CACERT": "/etc/ca.pem"},
			want:      Environment{Account: Account{IdentityEndpoint: "a"}, CACertFile: "/etc/ca.pem"},
		},
		"a CA": {
			variables: variables{"OS_AUTH_URL": "a", "OS_CACERT": certificate},
			want:      Environment{Account: Account{IdentityEndpoint: "a", CACert: certificate}},
		},
		"an entry of clouds.yaml": {variables: variables{"OS_CLOUD": "one"}, clouds: aCloudsYAML, want: Environment{Account: one}},
		"variables go before": {
			variables: variables{"OS_CLOUD": "one", "OS_AUTH_URL": "a", "OS_TOKEN": "t"}, clouds: aCloudsYAML,
			want: Environment{Account: Account{IdentityEndpoint: "a", Token: "t"}},
		},
		"some change the entry": {
			variables: variables{"OS_CLOUD": "one", "OS_REGION_NAME": "mine", "OS_INTERFACE": "admin", "OS_CACERT": certificate, "OS_USER_DOMAIN_NAME": "not this"}, clouds: aCloudsYAML,
			want: Environment{Account: changed(one, func(a *Account) { a.Region, a.Interface, a.CACert = "mine", "admin", certificate })},
		},
		"the only entry": {
			clouds: `clouds: {x: {regions: [r], cacert: ~/ca.pem, auth_type: v3password, auth: {auth_url: "a", user_id: 7, password: 0123, default_domain: d, token: left over}}}`,
			want: Environment{
				Account:    Account{IdentityEndpoint: "a", Region: "r", UserID: "7", Password: "0123", UserDomainID: "d", ProjectDomainID: "d"},
				CACertFile: "~/ca.pem",
			},
		},
		"an application credential in clouds.yaml": {
			clouds: `clouds: {x: {auth_type: v3applicationcredential, auth: {auth_url: "a", application_credential_id: i, application_credential_secret: s}}}`,
			want:   Environment{Account: Account{IdentityEndpoint: "a", ApplicationCredentialID: "i", ApplicationCredentialSecret: "s"}},
		},
		"a password in secure.yaml": {
			clouds: `clouds: {x: {region_name: r, auth: {auth_url: "a", username: u, user_domain_name: d, project_name: t, project_domain_name: d}}, y: {}}`,
			secure: `clouds: {x: {auth: {password: 0123}}, y: {auth: {password: other}}}`, variables: variables{"OS_CLOUD": "x"},
			want: Environment{Account: Account{
				IdentityEndpoint: "a", Region: "r", Username: "u", Password: "0123", UserDomainName: "d", ProjectName: "t", ProjectDomainName: "d",
			}},
		},
		"a vendor's profile": {
			clouds: `clouds: {x: {profile: vexxhost, region_name: mine, auth: {application_credential_id: i}}}`,
			secure: `clouds: {x: {auth: {application_credential_secret: s}}}`,
			public: `public-clouds: {vexxhost: {region_name: theirs, interface: internal, auth: {auth_url: "` + operatorEndpoint + `"}}}`,
			want: Environment{Account: Account{
				IdentityEndpoint: "a", Region: "mine", Interface: "internal", ApplicationCredentialID: "i", ApplicationCredentialSecret: "s",
			}},
		},
		"a client certificate, and no verification, since the operator says so": {
			clouds: `clouds: {x: {verify: false, cert: c.pem, key: k.pem, auth: {auth_url: "a", application_credential_id: i, application_credential_secret: s}}}`,
			want: Environment{
				Account:        Account{IdentityEndpoint: "a", ApplicationCredentialID: "i", ApplicationCredentialSecret: "s", Verify: VerifyNone},
				ClientCertFile: "c.pem", ClientKeyFile: "k.pem", AllowUnverified: true,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			full := func(text string) string {
				if text == "a" {
					return operatorEndpoint
				}
				return text
			}
			tc.want.Account.IdentityEndpoint = full(tc.want.Account.IdentityEndpoint)
			clouds := strings.ReplaceAll(tc.clouds, `"a"`, `"`+operatorEndpoint+`"`)
			got, err := EnvironmentFrom(Sources{
				Getenv: func(name string) string { return full(tc.variables[name]) }, Clouds: []byte(clouds), Secure: []byte(tc.secure), Public: []byte(tc.public),
				AllowUnverified: tc.want.AllowUnverified,
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestEnvironmentsThatCannotBeUsed(t *testing.T) {
	auth := `auth: {auth_url: "` + operatorEndpoint + `", username: u, password: hunter2hunter2}`
	for name, tc := range map[string]struct {
		variables   map[string]string
		clouds, say string
		secure      string
	}{
		"no such cloud":         {variables: map[string]string{"OS_CLOUD": "three"}, clouds: aCloudsYAML, say: "no cloud of the name"},
		"no clouds.yaml at all": {variables: map[string]string{"OS_CLOUD": "one"}, say: "no cloud of the name"},
		"which cloud":           {clouds: aCloudsYAML, say: "OS_CLOUD"},
		"no clouds":             {clouds: `{}`, say: "OS_CLOUD"},
		"no auth":               {clouds: `clouds: {x: {region_name: r}}`, say: "auth.auth_url"},
		"nothing of a cloud":    {clouds: `clouds: {x: }`, say: "auth.auth_url"},
		"a vendor's profile":    {clouds: `clouds: {x: {profile: vexxhost, auth: {username: u}}}`, say: "clouds-public.yaml"},
		"no login":              {clouds: `clouds: {x: {auth: {auth_url: "` + operatorEndpoint + `", project_name: t}}}`, say: "has no login"},
		"no secure.yaml":        {clouds: aCloudsYAML, variables: map[string]string{"OS_CLOUD": "one"}, secure: "clouds: [hunter2hunter2", say: "secure.yaml cannot be read at line 1"},
		"no verification":       {clouds: `clouds: {x: {verify: false, ` + auth + `}}`, say: "cacert"},
		"a scope of the system": {clouds: `clouds: {x: {auth: {auth_url: "` + operatorEndpoint + `", system_scope: all, token: t}}}`, say: "system_scope"},
		"another way to log in": {clouds: `clouds: {x: {auth_type: v3oidcpassword, ` + auth + `}}`, say: "auth_type"},
		"an unknown anchor":     {clouds: "clouds:\n  x:\n    auth:\n      password: *hunter2hunter2", say: "cannot be read"},
		"another shape":         {clouds: "clouds:\n  x:\n    auth: hunter2hunter2", say: "line 3"},
		"no YAML":               {clouds: "clouds: [hunter2hunter2", say: "line 1"},
		"half a login":          {variables: map[string]string{"OS_AUTH_URL": operatorEndpoint, "OS_USERNAME": "u"}, say: "password"},
		"two ways to log in":    {variables: map[string]string{"OS_USERNAME": "u", "OS_PASSWORD": "hunter2hunter2", "OS_TOKEN": "t"}, say: "more than one way"},
		"no address":            {variables: map[string]string{"OS_AUTH_URL": "keystone"}, say: "identityEndpoint"},
		"no interface":          {variables: map[string]string{"OS_INTERFACE": "private"}, say: "interface"},
		"no certificates":       {variables: map[string]string{"OS_CACERT": "-----BEGIN RSA PRIVATE KEY-----\naHVudGVyMg==\n-----END RSA PRIVATE KEY-----\n"}, say: "caCert"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := EnvironmentFrom(Sources{Getenv: func(name string) string { return tc.variables[name] }, Clouds: []byte(tc.clouds), Secure: []byte(tc.secure)})
			if err == nil || got != (Environment{}) || !strings.Contains(err.Error(), tc.say) {
				t.Fatalf("%v and %v, want something about %s", err, got.Account.Method(), tc.say)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a secret is told: %v", err)
			}
		})
	}
}
