package session_test

import (
	"testing"

	"github.com/millwright-dev/millwright/providers/openstack/spec"
)

func TestLoginWithoutAProjectIsRefused(t *testing.T) {
	c, now := newCloud(t), newClock()
	c.project = ""
	pool := c.pool(now)
	for range 2 {
		_, err := pool.Open(t.Context(), c.account(), "")
		expect(t, err, "DEPENDENCY_NOT_FOUND", "name the project")
		expectFields(t, err, "projectName")
	}
	c.expectCount(login, 1)
}

// The domain "default" is compared where somebody has named it.
func TestApplicationCredentialOfAnotherDomain(t *testing.T) {
	c := newCloud(t)
	c.domain = "other"
	account := spec.Account{IdentityEndpoint: c.url + "/identity/v3", ApplicationCredentialID: "a", ApplicationCredentialSecret: "s", ProjectName: "demo"}
	if _, err := c.pool(newClock()).Open(t.Context(), account, ""); err != nil {
		t.Error(err)
	}
	account.ProjectDomainID = "default"
	_, err := c.pool(newClock()).Open(t.Context(), account, "")
	expect(t, err, "CREDENTIALS_INVALID", "opens the project demo of the domain other, and the one that is named is demo of the domain default")
	expectFields(t, err, "projectDomainID")
}

func TestApplicationCredentialOfAnotherProject(t *testing.T) {
	for _, test := range []struct {
		name         string
		account      spec.Account
		words, field string
	}{
		{"its own, by id", spec.Account{ProjectID: projectID}, "", ""},
		{"its own, by name", spec.Account{ProjectName: "demo", ProjectDomainID: "default"}, "", ""},
		{"another, by id", spec.Account{ProjectID: "another"}, "The application credential opens the project " + projectID + ", and the one that is named is another.", "projectID"},
		{"its own, by the names of both", spec.Account{ProjectName: "demo", ProjectDomainName: "Default"}, "", ""},
		{"one of that name in another domain", spec.Account{ProjectName: "demo", ProjectDomainName: "ops"},
			"The application credential opens the project demo of the domain Default, and the one that is named is demo of the domain ops.", "projectDomainName"},
		{"one of that name in another domain, by its id", spec.Account{ProjectName: "demo", ProjectDomainID: "other"},
			"The application credential opens the project demo of the domain default, and the one that is named is demo of the domain other.", "projectDomainID"},
		{"another, by name", spec.Account{ProjectName: "prod", ProjectDomainID: "default"}, "The application credential opens the project demo, and the one that is named is prod.", "projectName"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCloud(t)
			pool := c.pool(newClock())
			test.account.IdentityEndpoint = c.url + "/identity/v3"
			test.account.ApplicationCredentialID, test.account.ApplicationCredentialSecret = "a", "s"
			for range 2 {
				_, err := pool.Open(t.Context(), test.account, "")
				if test.words == "" {
					if err != nil {
						t.Fatal(err)
					}
					continue
				}
				expect(t, err, "CREDENTIALS_INVALID", test.words)
				expectFields(t, err, test.field)
			}
			c.expectCount(login, 1)
		})
	}
}
