package spec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The specs that MetaKube's documentation shows, as users have them.
const (
	// The one with empty strings for what comes from elsewhere, of the oldest pages.
	metakubeOld = `{
	  "availabilityZone": "dbl1", "domainName": "", "flavor": "m1.micro", "floatingIpPool": "ext-net",
	  "identityEndpoint": "https://api.dbl.cloud.syseleven.net:5000/v3", "image": "Ubuntu Bionic 18.04 (2019-03-27)",
	  "network": "kubermatic-92r62cx8j6", "password": "", "region": "dbl", "securityGroups": ["kubermatic-92r62cx8j6"],
	  "subnet": "86db31c3-d5dd-4a88-bc92-ab8a148062c8", "tags": {"kubermatic-cluster": "92r62cx8j6"},
	  "tenantName": "", "tokenId": "", "username": ""
	}`
	metakubeNew = `{
	  "availabilityZone": "dbl1", "flavor": "m1.small", "floatingIpPool": "ext-net", "image": "Ubuntu Noble 24.04 (2024-08-01)",
	  "network": "metakube-mmxfcmgjkx", "region": "dbl", "securityGroups": ["metakube-mmxfcmgjkx"],
	  "serverGroupID": "fe9dcd44-f08a-492a-9e64-4e38e1d51573", "subnet": "2969ae04-a429-4c1b-83e3-2f76fc3a342a"
	}`
	metakubeGrav = `{
	  "availabilityZone": "dbl1", "domainName": "", "flavor": "m1.micro", "floatingIpPool": "ext-net",
	  "identityEndpoint": "https://api.dbl.cloud.syseleven.net:5000/v3", "image": "Ubuntu 18.04 LTS sys11 optimized - 2018-08-13",
	  "network": "kubermatic-92r62cx8j6", "password": "", "region": "dbl", "securityGroups": ["kubermatic-92r62cx8j6"],
	  "subnet": "86db31c3-d5dd-4a88-bc92-ab8a148062c8", "tags": {"kubermatic-cluster": "92r62cx8j6"},
	  "tenantName": "", "tokenId": "", "username": ""
	}`
)

func metakubeOperator() Environment {
	return Environment{Account: Account{
		IdentityEndpoint: "https://api.dbl.cloud.syseleven.net:5000/v3", Region: "cbk",
		Username: "metakube", Password: operatorPassword, ProjectID: "p1",
	}}
}

func TestMetaKubesSpecsAreRead(t *testing.T) {
	account := Account{
		IdentityEndpoint: "https://api.dbl.cloud.syseleven.net:5000/v3", Region: "dbl", Interface: InterfacePublic,
		Username: "metakube", UserDomainID: "default", Password: operatorPassword, ProjectID: "p1",
	}
	common := func(change func(*Spec)) Spec {
		s := Spec{
			Account: account, ComputeAPIVersion: "2.52", AvailabilityZone: "dbl1", Flavor: "m1.micro", FloatingIPPool: "ext-net",
			Ports:          []Port{{Network: "kubermatic-92r62cx8j6", Subnet: "86db31c3-d5dd-4a88-bc92-ab8a148062c8"}},
			SecurityGroups: []Reference{"kubermatic-92r62cx8j6"}, Metadata: map[string]string{"kubermatic-cluster": "92r62cx8j6"},
		}
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		raw  string
		want Spec
	}{
		"the oldest page": {metakubeOld, common(func(s *Spec) { s.Image = "Ubuntu Bionic 18.04 (2019-03-27)" })},
		"its source":      {metakubeGrav, common(func(s *Spec) { s.Image = "Ubuntu 18.04 LTS sys11 optimized - 2018-08-13" })},
		"the newest page": {metakubeNew, common(func(s *Spec) {
			s.Flavor, s.Image, s.ServerGroup = "m1.small", "Ubuntu Noble 24.04 (2024-08-01)", "fe9dcd44-f08a-492a-9e64-4e38e1d51573"
			s.Ports = []Port{{Network: "metakube-mmxfcmgjkx", Subnet: "2969ae04-a429-4c1b-83e3-2f76fc3a342a"}}
			s.SecurityGroups, s.Metadata = []Reference{"metakube-mmxfcmgjkx"}, map[string]string{}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read([]byte(tc.raw), nil, metakubeOperator())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, places); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if found := Validate([]byte(tc.raw), nil, Environment{}); found != nil {
				t.Errorf("without secrets and environment: %v", found)
			}
		})
	}
}

// TestKubermaticsExampleIsRead has the spec of its example as core gives it: all of the account
// from one Secret, and the strings and nulls that its own defaulting leaves behind.
func TestKubermaticsExampleIsRead(t *testing.T) {
	raw := `{
	  "computeAPIVersion": "2.67", "image": "Ubuntu 18.04 amd64", "flavor": "m1.small", "serverGroup": "", "securityGroups": ["external-ssh"],
	  "floatingIpPool": "ext-net", "disablePortSecurity": "false", "availabilityZone": "", "network": "", "subnet": "",
	  "rootDiskSizeGB": 20, "rootDiskVolumeType": "", "tags": {"tagKey": "tagValue"}, "trustDevicePath": null, "nodeVolumeAttachLimit": null,
	  "configDrive": "true", "applicationCredentialID": "", "tokenId": ""
	}`
	secrets := secretsOf(map[string]string{
		"identityEndpoint": otherEndpoint + "\n", "username": "user", "password": "pass word", "domainName": "Default",
		"tenantName": "t", "projectName": "t", "tenantID": "", "projectID": "", "region": "r",
		"instanceReadyCheckPeriod": "2s", "instanceReadyCheckTimeout": "4m",
	})
	got, err := Read([]byte(raw), secrets, operator())
	if err != nil {
		t.Fatal(err)
	}
	drive := true
	want := Spec{
		Account: Account{
			IdentityEndpoint: otherEndpoint, Region: "r", Interface: InterfacePublic, CACert: operated().CACert,
			Username: "user", Password: "pass word", UserDomainName: "Default", ProjectName: "t", ProjectDomainName: "Default",
		},
		ComputeAPIVersion: "2.67", Flavor: "m1.small", Image: "Ubuntu 18.04 amd64", RootDisk: &RootDisk{SizeGB: 20}, Ports: []Port{{}},
		SecurityGroups: []Reference{"external-ssh"}, FloatingIPPool: "ext-net", ConfigDrive: &drive, Metadata: map[string]string{"tagKey": "tagValue"},
	}
	if diff := cmp.Diff(want, got, places); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
