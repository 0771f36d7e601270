package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const ownLogin = `"username":"me","password":"mine"`

// TestOperatorsCredentialsStayWithTheirAddress shows when they are used, and that they never leave
// for another's address.
func TestOperatorsCredentialsStayWithTheirAddress(t *testing.T) {
	noEndpoint := operator()
	noEndpoint.Account.IdentityEndpoint = ""
	appCredential := Environment{Account: Account{
		IdentityEndpoint: operatorEndpoint, ApplicationCredentialID: "id", ApplicationCredentialSecret: operatorPassword, ProjectID: "p1",
	}}
	for name, tc := range map[string]struct {
		spec    string
		secrets map[string]string
		env     Environment
		want    Account
		wrong   string
	}{
		"nothing is given":           {spec: `{}`, env: operator(), want: operated()},
		"empty strings are nothing":  {spec: `{"identityEndpoint":"","username":"","password":"","tokenId":"","domainName":""}`, env: operator(), want: operated()},
		"the same address":           {spec: `{"identityEndpoint":"` + operatorEndpoint + `"}`, env: operator(), want: operated()},
		"with a slash":               {spec: `{"identityEndpoint":"` + operatorEndpoint + `/"}`, env: operator(), want: operated()},
		"without its version":        {spec: `{"identityEndpoint":"https://KEYSTONE.example.com:5000"}`, env: operator(), want: operated()},
		"another host":               {spec: `{"identityEndpoint":"` + otherEndpoint + `"}`, env: operator(), wrong: "identityEndpoint"},
		"another port":               {spec: `{"identityEndpoint":"https://keystone.example.com:5001/v3"}`, env: operator(), wrong: "identityEndpoint"},
		"another path":               {spec: `{"identityEndpoint":"https://keystone.example.com:5000/mine/v3"}`, env: operator(), wrong: "identityEndpoint"},
		"without TLS":                {spec: `{"identityEndpoint":"http://keystone.example.com:5000/v3"}`, env: operator(), wrong: "identityEndpoint"},
		"a prefix of the host":       {spec: `{"identityEndpoint":"https://keystone.example.com:5000@evil.example.org/v3"}`, env: operator(), wrong: "identityEndpoint"},
		"an address from a Secret":   {spec: `{}`, secrets: map[string]string{"identityEndpoint": otherEndpoint}, env: operator(), wrong: "identityEndpoint"},
		"an address in a variable":   {spec: `{}`, secrets: map[string]string{"OS_AUTH_URL": otherEndpoint}, env: operator(), wrong: "identityEndpoint"},
		"the environment has none":   {spec: `{"identityEndpoint":"` + operatorEndpoint + `"}`, env: noEndpoint, wrong: "identityEndpoint"},
		"nobody has an address":      {spec: `{}`, env: noEndpoint, wrong: "identityEndpoint"},
		"nobody has credentials":     {spec: `{}`, env: Environment{Account: Account{IdentityEndpoint: operatorEndpoint}}, wrong: "username"},
		"nobody has anything":        {spec: `{}`, wrong: "identityEndpoint username"},
		"another CA":                 {spec: `{"caCert":` + quoted(otherCertificate) + `}`, env: operator(), wrong: "caCert"},
		"another CA in a Secret":     {spec: `{}`, secrets: map[string]string{"cacert": otherCertificate}, env: operator(), wrong: "caCert"},
		"the same CA":                {spec: `{"caCert":` + quoted(strings.TrimSpace(certificate)) + `}`, env: operator(), want: operated()},
		"a trust of somebody else":   {spec: `{"trustID":"t"}`, env: operator(), wrong: "trustID"},
		"half a login is not filled": {spec: `{"username":"me"}`, env: operator(), wrong: "password"},
		"nor is the other half":      {spec: `{"password":"mine"}`, env: operator(), wrong: "username"},
		"its own region and interface": {
			spec: `{"region":"cbk","interface":"admin"}`, env: operator(), want: operated(func(a *Account) { a.Region, a.Interface = "cbk", "admin" }),
		},
		"its own project": {
			spec: `{"projectName":"mine"}`, env: operator(), want: operated(func(a *Account) { a.ProjectName = "mine" }),
		},
		"its own project by id": {
			spec: `{"tenantID":"7"}`, env: operator(),
			want: operated(func(a *Account) { a.ProjectName, a.ProjectDomainName, a.ProjectID = "", "", "7" }),
		},
		"its own project in another domain": {
			spec: `{"projectName":"mine","domainName":"d"}`, env: operator(),
			want: operated(func(a *Account) { a.ProjectName, a.ProjectDomainName = "mine", "d" }),
		},
		"a domain alone is that of no user": {spec: `{"domainName":"d"}`, env: operator(), want: operated()},
		"an application credential": {spec: `{}`, env: appCredential, want: Account{
			IdentityEndpoint: operatorEndpoint, Interface: InterfacePublic, ApplicationCredentialID: "id", ApplicationCredentialSecret: operatorPassword, ProjectID: "p1",
		}},
		"one of the spec names its project": {
			spec: `{"identityEndpoint":"` + operatorEndpoint + `","applicationCredentialID":"i","applicationCredentialSecret":"s","projectName":"p"}`, want: Account{
				IdentityEndpoint: operatorEndpoint, Interface: InterfacePublic, ApplicationCredentialID: "i", ApplicationCredentialSecret: "s", ProjectName: "p",
			}},
		"and its user's domain": {
			spec: `{"identityEndpoint":"` + operatorEndpoint + `","applicationCredentialID":"i","applicationCredentialSecret":"s","projectName":"p","userDomainID":"default"}`,
			want: Account{
				IdentityEndpoint: operatorEndpoint, Interface: InterfacePublic, ApplicationCredentialID: "i", ApplicationCredentialSecret: "s", ProjectName: "p",
			},
		},
		"and its domain": {
			spec: `{"identityEndpoint":"` + operatorEndpoint + `","applicationCredentialID":"i","applicationCredentialSecret":"s","projectName":"p","domainID":"default"}`, want: Account{
				IdentityEndpoint: operatorEndpoint, Interface: InterfacePublic, ApplicationCredentialID: "i", ApplicationCredentialSecret: "s",
				ProjectName: "p", ProjectDomainID: "default",
			}},
		"and another project":         {spec: `{"projectID":"p2"}`, env: appCredential, wrong: "projectID"},
		"and another project by name": {spec: `{"tenantName":"p2"}`, env: appCredential, wrong: "tenantName"},
		"and its own project": {spec: `{"projectID":"p1"}`, env: appCredential, want: Account{
			IdentityEndpoint: operatorEndpoint, Interface: InterfacePublic, ApplicationCredentialID: "id", ApplicationCredentialSecret: operatorPassword, ProjectID: "p1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			raw := with(t, tc.spec)
			got, err := ReadAccount(raw, secretsOf(tc.secrets), tc.env)
			wrong, _ := wrongFields(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" || wrong != tc.wrong {
				t.Errorf("%v, want %q wrong; -want +got:\n%s", err, tc.wrong, diff)
			}
			if err != nil && strings.Contains(err.Error(), operatorPassword) {
				t.Errorf("the password is told: %v", err)
			}
			if got.Password == operatorPassword && !sameEndpoint(got.IdentityEndpoint, operatorEndpoint) {
				t.Errorf("the password goes to %s", got.IdentityEndpoint)
			}
			// A Secret may bring credentials yet.
			if found := violated(raw, nil, tc.env); found != "" && !strings.Contains(tc.spec, "@") {
				t.Errorf("without secrets, %s is found wrong", found)
			}
		})
	}
}

func TestSpecsOwnCredentialsAreUsed(t *testing.T) {
	me := func(change ...func(*Account)) Account {
		a := Account{
			IdentityEndpoint: operatorEndpoint, Region: "dbl", Interface: InterfaceInternal, CACert: operated().CACert,
			Username: "me", Password: "mine", UserDomainID: "default",
		}
		for _, c := range change {
			c(&a)
		}
		return a
	}
	elsewhere := func(a *Account) { a.IdentityEndpoint, a.Region, a.Interface = otherEndpoint, "", InterfacePublic }
	appCredential := func(a *Account) {
		a.Username, a.Password, a.UserDomainID = "", "", ""
		a.ApplicationCredentialID, a.ApplicationCredentialSecret = "id", "s"
	}
	for name, tc := range map[string]struct {
		spec    string
		secrets map[string]string
		want    Account
		wrong   string
	}{
		"the operator's address, not his project": {spec: `{` + ownLogin + `}`, want: me()},
		"elsewhere nothing is the operator's":     {spec: `{` + ownLogin + `,"identityEndpoint":"` + otherEndpoint + `/"}`, want: me(elsewhere)},
		"its own CA": {spec: `{` + ownLogin + `,"caCert":` + quoted(otherCertificate) + `}`, want: me(func(a *Account) {
			a.CACert = strings.TrimSpace(otherCertificate)
		})},
		"one domain for both": {spec: `{` + ownLogin + `,"domainName":"d","tenantName":"t"}`, want: me(func(a *Account) {
			a.UserDomainID, a.UserDomainName, a.ProjectName, a.ProjectDomainName = "", "d", "t", "d"
		})},
		"one for each": {spec: `{` + ownLogin + `,"domainID":"x","userDomainID":"u","projectDomainName":"d","projectName":"t"}`, want: me(func(a *Account) {
			a.UserDomainID, a.ProjectName, a.ProjectDomainName = "u", "t", "d"
		})},
		"the project's is the user's": {spec: `{` + ownLogin + `,"userDomainName":"d","projectName":"t"}`, want: me(func(a *Account) {
			a.UserDomainID, a.UserDomainName, a.ProjectName, a.ProjectDomainName = "", "d", "t", "d"
		})},
		"an id goes before a name": {spec: `{` + ownLogin + `,"domainName":"d","domainID":"i","projectID":"p","projectName":"t"}`, want: me(func(a *Account) {
			a.UserDomainID, a.ProjectID = "i", "p"
		})},
		"a user by id": {spec: `{"userID":"u","password":"mine","domainName":"d","projectName":"t","trustID":"tr"}`, want: me(func(a *Account) {
			a.Username, a.UserID, a.UserDomainID, a.ProjectName, a.ProjectDomainName, a.TrustID = "", "u", "", "t", "d", "tr"
		})},
		"a token": {spec: `{"tokenId":"t","projectID":"p"}`, want: me(func(a *Account) {
			a.Username, a.Password, a.UserDomainID, a.Token, a.ProjectID = "", "", "", "t", "p"
		})},
		"an application credential": {spec: `{"applicationCredentialID":"id","applicationCredentialSecret":"s"}`, want: me(appCredential)},
		"one by name": {
			spec: `{"applicationCredentialName":"n","applicationCredentialSecret":"s","username":"me"}`,
			want: me(func(a *Account) {
				a.Password, a.ApplicationCredentialName, a.ApplicationCredentialSecret = "", "n", "s"
			}),
		},
		"secrets go before the spec": {
			spec: `{` + ownLogin + `}`, secrets: map[string]string{"password": "from a Secret\n"},
			want: me(func(a *Account) { a.Password = "from a Secret" }),
		},
		"an empty secret is none":                 {spec: `{` + ownLogin + `}`, secrets: map[string]string{"password": "\n", "tokenId": ""}, want: me()},
		"secrets of other fields are passed over": {spec: `{` + ownLogin + `}`, secrets: map[string]string{"image": "evil", "interface": "evil", "nothing": "x"}, want: me()},
		"two ways":                                 {spec: `{` + ownLogin + `,"tokenId":"t"}`, wrong: "tokenId"},
		"two other ways":                           {spec: `{"tokenId":"t","applicationCredentialID":"id","applicationCredentialSecret":"s"}`, wrong: "applicationCredentialID"},
		"a user and an application credential":     {spec: `{"username":"u","applicationCredentialID":"id","applicationCredentialSecret":"s"}`, wrong: "applicationCredentialID"},
		"no secret of the application credential":  {spec: `{"applicationCredentialID":"id"}`, wrong: "applicationCredentialSecret"},
		"no application credential for the secret": {spec: `{"applicationCredentialSecret":"s"}`, wrong: "applicationCredentialID"},
		"no user of the application credential":    {spec: `{"applicationCredentialSecret":"s","applicationCredentialName":"n"}`, wrong: "username"},
		"an application credential by both":        {spec: `{"applicationCredentialSecret":"s","applicationCredentialName":"n","applicationCredentialID":"i"}`, wrong: "applicationCredentialName"},
		"a user by both":                           {spec: `{` + ownLogin + `,"userID":"u"}`, wrong: "userID"},
		"two projects":                             {spec: `{` + ownLogin + `,"projectName":"a","tenantName":"b","projectID":"c","tenantID":"d"}`, wrong: "tenantID tenantName"},
		"the same project twice": {spec: `{` + ownLogin + `,"projectID":"c","tenantID":"c"}`, want: me(func(a *Account) {
			a.ProjectID = "c"
		})},
		"an address that is none":   {spec: `{` + ownLogin + `,"identityEndpoint":"keystone.example.com:5000"}`, wrong: "identityEndpoint"},
		"an address with a user":    {spec: `{` + ownLogin + `,"identityEndpoint":"https://u:p@keystone.example.com"}`, wrong: "identityEndpoint"},
		"an address with a query":   {spec: `{` + ownLogin + `,"identityEndpoint":"https://keystone.example.com?"}`, wrong: "identityEndpoint"},
		"an address of another way": {spec: `{` + ownLogin + `,"identityEndpoint":"file:///etc/passwd"}`, wrong: "identityEndpoint"},
		"no interface":              {spec: `{` + ownLogin + `,"interface":"private"}`, wrong: "interface"},
		"no certificate":            {spec: `{` + ownLogin + `,"caCert":"/etc/ssl/ca.pem"}`, wrong: "caCert"},
		"a broken certificate":      {spec: `{` + ownLogin + `,"caCert":` + quoted("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n") + `}`, wrong: "caCert"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadAccount(with(t, tc.spec), secretsOf(tc.secrets), operator())
			wrong, _ := wrongFields(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" || wrong != tc.wrong {
				t.Errorf("%v, want %q wrong; -want +got:\n%s", err, tc.wrong, diff)
			}
		})
	}
}

const aCloudsYAML = `
clouds:
  one:
    region_name: r1
    interface: internalURL
    auth: {auth_url: "` + otherEndpoint + `", username: u1, password: p1, project_name: t1, user_domain_name: d1, project_domain_id: d2}
  two:
    auth: {auth_url: "` + otherEndpoint + `", token: t2}
`

// TestWholeSecrets are Secrets of a MachineClass or a Cluster, which bring what they hold under
// their own keys.
func TestWholeSecrets(t *testing.T) {
	variables := map[string]string{"OS_AUTH_URL": otherEndpoint, "OS_USERNAME": "u", "OS_PASSWORD": "p\n", "OS_PROJECT_ID": "i", "OS_REGION_NAME": "r", "OS_CACERT": otherCertificate}
	theirs := Account{
		IdentityEndpoint: otherEndpoint, Region: "r", Interface: InterfacePublic, CACert: strings.TrimSpace(otherCertificate),
		Username: "u", Password: "p", UserDomainID: "default", ProjectID: "i",
	}
	one := Account{
		IdentityEndpoint: otherEndpoint, Region: "r1", Interface: InterfaceInternal, CACert: operated().CACert,
		Username: "u1", Password: "p1", UserDomainName: "d1", ProjectName: "t1", ProjectDomainID: "d2",
	}
	changed := func(a Account, change func(*Account)) Account {
		change(&a)
		return a
	}
	for name, tc := range map[string]struct {
		spec    string
		secrets map[string]string
		want    Account
		wrong   string
	}{
		"variables": {spec: `{}`, secrets: variables, want: theirs},
		"an entry of clouds.yaml": {
			spec: `{}`, secrets: map[string]string{"clouds.yaml": aCloudsYAML, "cloud": "one"}, want: one,
		},
		"with its CA": {
			spec: `{}`, secrets: map[string]string{"clouds.yaml": aCloudsYAML, "OS_CLOUD": "one", "cacert": otherCertificate},
			want: changed(one, func(a *Account) { a.CACert = strings.TrimSpace(otherCertificate) }),
		},
		"its own region and project": {
			spec: `{"region":"mine","projectName":"mine"}`, secrets: variables,
			want: changed(theirs, func(a *Account) {
				a.Region, a.ProjectID, a.ProjectName, a.ProjectDomainID = "mine", "", "mine", "default"
			}),
		},
		"its own login, their address and project": {
			spec: `{` + ownLogin + `}`, secrets: variables,
			want: changed(theirs, func(a *Account) { a.Username, a.Password = "me", "mine" }),
		},
		"a field's own name goes before": {
			spec: `{}`, secrets: map[string]string{"OS_USERNAME": "u", "OS_PASSWORD": "p", "username": "me", "password": "mine", "identityEndpoint": otherEndpoint},
			want: Account{IdentityEndpoint: otherEndpoint, Interface: InterfacePublic, CACert: operated().CACert, Username: "me", Password: "mine", UserDomainID: "default"},
		},
		"their credentials do not go elsewhere":  {spec: `{"identityEndpoint":"` + operatorEndpoint + `"}`, secrets: variables, wrong: "identityEndpoint"},
		"their address in another way":           {spec: `{"identityEndpoint":"` + strings.TrimSuffix(otherEndpoint, "/v3") + `"}`, secrets: variables, want: changed(theirs, func(a *Account) { a.IdentityEndpoint = strings.TrimSuffix(otherEndpoint, "/v3") })},
		"which cloud":                            {spec: `{}`, secrets: map[string]string{"clouds.yaml": aCloudsYAML}, wrong: `["clouds.yaml"]`},
		"a broken clouds.yaml":                   {spec: `{}`, secrets: map[string]string{"clouds.yaml": "clouds: ["}, wrong: `["clouds.yaml"]`},
		"a broken one that nobody needs":         {spec: `{"identityEndpoint":"` + otherEndpoint + `",` + ownLogin + `}`, secrets: map[string]string{"clouds.yaml": "clouds: ["}, want: Account{IdentityEndpoint: otherEndpoint, Interface: InterfacePublic, CACert: operated().CACert, Username: "me", Password: "mine", UserDomainID: "default"}},
		"a CA in a file of the driver's":         {spec: `{}`, secrets: map[string]string{"OS_AUTH_URL": otherEndpoint, "OS_TOKEN": "t", "OS_CACERT": "/dev/zero"}, wrong: `["clouds.yaml"]`},
		"half a login":                           {spec: `{}`, secrets: map[string]string{"OS_USERNAME": "u"}, wrong: `["clouds.yaml"]`},
		"a key called cloud in another's Secret": {spec: `{"identityEndpoint":"` + otherEndpoint + `"}`, secrets: map[string]string{"cloud": "x", "tokenId": "t"}, want: Account{IdentityEndpoint: otherEndpoint, Interface: InterfacePublic, CACert: operated().CACert, Token: "t"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadAccount(with(t, tc.spec), secretsOf(tc.secrets), operator())
			wrong, _ := wrongFields(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" || wrong != tc.wrong {
				t.Errorf("%v, want %q wrong; -want +got:\n%s", err, tc.wrong, diff)
			}
		})
	}
}

// What a Secret or the driver's environment can mend is not the spec's fault for good.
func TestWhatTheSpecNeedNotMend(t *testing.T) {
	login := `"identityEndpoint":"https://keystone.example.com/v3","username":"u"`
	for name, tc := range map[string]struct {
		spec    string
		secrets map[string][]byte
		want    string
	}{
		"no credentials":                       {`{}`, nil, "CREDENTIALS_INVALID"},
		"no password":                          {`{` + login + `}`, nil, "CREDENTIALS_INVALID"},
		"a clouds.yaml that cannot be read":    {`{}`, map[string][]byte{"clouds.yaml": []byte("clouds: [")}, "CREDENTIALS_INVALID"},
		"no password, and a size that is none": {`{` + login + `,"rootDiskSizeGB":-1}`, nil, "SPEC_INVALID"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(with(t, tc.spec), tc.secrets, Environment{})
			if _, reason := wrongFields(t, err); reason != tc.want {
				t.Errorf("%v (%s), want %s", err, reason, tc.want)
			}
		})
	}
}

func quoted(text string) string { return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"` }
