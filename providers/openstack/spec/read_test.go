package spec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// least is what the least spec becomes.
func least(change ...func(*Spec)) Spec {
	s := Spec{
		Account: operated(), ComputeAPIVersion: MinComputeAPIVersion, Flavor: "m1.small", Image: "noble", Ports: []Port{{}}, Metadata: map[string]string{},
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func TestRead(t *testing.T) {
	yes, no := true, false
	for name, tc := range map[string]struct {
		spec string
		want Spec
	}{
		"the least": {`{}`, least()},
		"all that is simple": {
			`{"availabilityZone":"z","computeAPIVersion":"2.90","floatingIpPool":"ext","serverGroup":"g","configDrive":true,"trustDevicePath":true,
			  "nodeVolumeAttachLimit":25,"rootDiskSizeGB":50,"rootDiskVolumeType":"ssd","instanceReadyCheckPeriod":"1s","instanceReadyCheckTimeout":"1h30m",
			  "schedulerHints":{"different_host":["a","b"],"build_near_host_ip":"10.0.0.1"}}`,
			least(func(s *Spec) {
				s.AvailabilityZone, s.ComputeAPIVersion, s.FloatingIPPool, s.ServerGroup = "z", "2.90", "ext", "g"
				s.ConfigDrive = &yes
				s.RootDisk = &RootDisk{SizeGB: 50, VolumeType: "ssd"}
				s.SchedulerHints = map[string]any{"different_host": []any{"a", "b"}, "build_near_host_ip": "10.0.0.1"}
			}),
		},
		"as strings": {
			`{"configDrive":"false","trustDevicePath":"True","nodeVolumeAttachLimit":"25","rootDiskSizeGB":"50"}`,
			least(func(s *Spec) {
				s.ConfigDrive, s.RootDisk = &no, &RootDisk{SizeGB: 50}
			}),
		},
		"empty strings and nulls": {
			`{"configDrive":"","trustDevicePath":null,"nodeVolumeAttachLimit":"","rootDiskSizeGB":null,"rootDiskVolumeType":"","tags":"","serverMetadata":null,
			  "schedulerHints":null,"securityGroups":["",null],"networks":[""],"network":"","subnet":"","ports":null,"additionalBlockDevices":[],
			  "computeAPIVersion":"","instanceReadyCheckPeriod":"","serverGroup":"","serverGroupID":"","interface":"","caCert":"","disablePortSecurity":""}`,
			least(),
		},
		"tags that are metadata": {
			`{"tags":{"a":"b","c":null},"serverMetadata":{"a":"b","d.e":"f: g"}}`,
			least(func(s *Spec) { s.Metadata = map[string]string{"a": "b", "c": "", "d.e": "f: g"} }),
		},
		"tags that are tags": {
			`{"tags":["b","a","","b",null],"serverMetadata":{"a":"b"}}`,
			least(func(s *Spec) { s.Tags, s.Metadata = []string{"b", "a"}, map[string]string{"a": "b"} }),
		},
		"server group by its other name": {`{"serverGroupID":"g","serverGroup":"g"}`, least(func(s *Spec) { s.ServerGroup = "g" })},
		"disks": {
			`{"additionalBlockDevices":[{"name":"etcd","sizeGiB":10,"storage":{"type":"Volume","volume":{"type":"ssd"}}},{"name":"data","sizeGiB":"20"},
			  {"name":"cache","sizeGiB":5,"storage":{"type":"Local"}}],"rootDiskSizeGB":9,"rootDiskAvailabilityZone":"z"}`,
			least(func(s *Spec) {
				s.RootDisk = &RootDisk{SizeGB: 9, AvailabilityZone: "z"}
				s.Volumes = []Volume{{Name: "etcd", SizeGB: 10, VolumeType: "ssd"}, {Name: "data", SizeGB: 20}, {Name: "cache", SizeGB: 5, IsLocal: true}}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw := with(t, tc.spec)
			got, err := Read(raw, nil, operator())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, places); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if found := violated(raw, nil, Environment{}); found != "" {
				t.Errorf("%s is found wrong", found)
			}
		})
	}
}

func TestReadNamesEveryWrongField(t *testing.T) {
	var many []string
	for i := range MaxTags + 1 {
		many = append(many, fmt.Sprintf(`"t%d"`, i))
	}
	long := strings.Repeat("x", 256)
	for name, tc := range map[string]struct{ spec, wrong string }{
		"no flavor, no image":            {`{"flavor":"","image":null}`, "flavor image"},
		"unknown fields":                 {`{"colour":"red","Flavor":"x","ports":[{"name":"x"}]}`, "Flavor colour ports[0].name"},
		"other types":                    {`{"flavor":1,"networks":"n","ports":{},"serverMetadata":{"a":1}}`, "flavor networks ports serverMetadata.a"},
		"no truth":                       {`{"configDrive":"yes","trustDevicePath":1,"disablePortSecurity":[]}`, "configDrive disablePortSecurity trustDevicePath"},
		"no numbers":                     {`{"rootDiskSizeGB":"big","nodeVolumeAttachLimit":{}}`, "nodeVolumeAttachLimit rootDiskSizeGB"},
		"numbers that are none of it":    {`{"rootDiskSizeGB":1.5,"nodeVolumeAttachLimit":-1}`, "nodeVolumeAttachLimit rootDiskSizeGB"},
		"a disk of no size":              {`{"rootDiskSizeGB":0,"rootDiskVolumeType":"ssd"}`, "rootDiskSizeGB"},
		"a disk of all sizes":            {`{"rootDiskSizeGB":4294967297}`, "rootDiskSizeGB"},
		"a disk's type without a size":   {`{"rootDiskVolumeType":"ssd"}`, "rootDiskVolumeType"},
		"times":                          {`{"instanceReadyCheckPeriod":"5","instanceReadyCheckTimeout":"0s"}`, "instanceReadyCheckPeriod instanceReadyCheckTimeout"},
		"a time in the past":             {`{"instanceReadyCheckPeriod":"-5s"}`, "instanceReadyCheckPeriod"},
		"a microversion that is too old": {`{"computeAPIVersion":"2.51"}`, "computeAPIVersion"},
		"one that is all":                {`{"computeAPIVersion":"latest"}`, "computeAPIVersion"},
		"one that is none":               {`{"computeAPIVersion":"2.067"}`, "computeAPIVersion"},
		"one of another API":             {`{"computeAPIVersion":"3.60"}`, "computeAPIVersion"},
		"two server groups":              {`{"serverGroupID":"a","serverGroup":"b"}`, "serverGroupID"},
		"a server group as a hint":       {`{"schedulerHints":{"group":"a"}}`, "schedulerHints.group"},
		"tags of another shape":          {`{"tags":"a"}`, "tags"},
		"tags of other types":            {`{"tags":{"a":1,"b.c":{}}}`, `tags.a tags["b.c"]`},
		"tags of other types in a list":  {`{"tags":["a",1,["b"]]}`, "tags[1] tags[2]"},
		"tags that Nova refuses":         {`{"tags":["a/b","a,b","` + strings.Repeat("x", 61) + `"]}`, "tags[0] tags[1] tags[2]"},
		"a tag of ours":                  {`{"tags":["Millwright-machine=x"]}`, "tags[0]"},
		"too many tags":                  {`{"tags":[` + strings.Join(many, ",") + `]}`, "tags"},
		"metadata that Nova refuses":     {`{"tags":{"a/b":"","":"","` + long + `":"","v":"` + long + `"}}`, `tags.` + long + ` tags.a/b tags.v tags[""]`},
		"metadata of ours":               {`{"serverMetadata":{"millwright-machine":"x"},"tags":{"MILLWRIGHT-x":""}}`, "serverMetadata.millwright-machine tags.MILLWRIGHT-x"},
		"metadata that is not one thing": {`{"serverMetadata":{"a":"b"},"tags":{"a":"c"}}`, "serverMetadata.a"},
		"disks without anything":         {`{"additionalBlockDevices":[{},null]}`, "additionalBlockDevices[0].name additionalBlockDevices[0].sizeGiB additionalBlockDevices[1].name additionalBlockDevices[1].sizeGiB"},
		"disks of names that cannot be":  {`{"additionalBlockDevices":[{"name":"a","sizeGiB":1},{"name":"a","sizeGiB":1},{"name":"Root","sizeGiB":1},{"name":"a/b","sizeGiB":1}]}`, "additionalBlockDevices[1].name additionalBlockDevices[2].name additionalBlockDevices[3].name"},
		"disks of sizes that cannot be":  {`{"additionalBlockDevices":[{"name":"a","sizeGiB":0},{"name":"b","sizeGiB":"x"}]}`, "additionalBlockDevices[0].sizeGiB additionalBlockDevices[1].sizeGiB"},
		"a disk of another kind":         {`{"additionalBlockDevices":[{"name":"a","sizeGiB":1,"storage":{"type":"local"}}]}`, "additionalBlockDevices[0].storage.type"},
		"a local disk of a volume type":  {`{"additionalBlockDevices":[{"name":"a","sizeGiB":1,"storage":{"type":"Local","volume":{"type":"ssd"}}}]}`, "additionalBlockDevices[0].storage.volume"},
		"a zone of no volume":            {`{"rootDiskAvailabilityZone":"z"}`, "rootDiskAvailabilityZone"},
		"unknown fields of a disk":       {`{"additionalBlockDevices":[{"name":"a","sizeGiB":1,"storage":{"volume":{"size":1}}}]}`, "additionalBlockDevices[0].storage.volume.size"},
		"all at once, sorted, each once": {`{"flavor":"","rootDiskSizeGB":-1,"tags":["a/b"],"interface":"x"}`, "flavor interface rootDiskSizeGB tags[0]"},
		"an address of the cloud":        {`{"identityEndpoint":"keystone"}`, "identityEndpoint"},
		"two projects":                   {`{"tenantID":"a","projectID":"b"}`, "tenantID"},
		"a port without port security":   {`{"ports":[{"disablePortSecurity":true,"securityGroups":["a"]}]}`, "ports[0].securityGroups"},
		"references that are none": {
			`{"image":7,"network":{"colour":"red"},"subnet":["s"],"securityGroups":[{},{"tags":"a"}]}`,
			"image network securityGroups[0] securityGroups[1] subnet",
		},
		"references of a port that are none": {
			`{"ports":[{"network":{},"subnet":1,"securityGroups":[true],"fixedIPs":[{"subnet":{"id":"x"}}]}]}`,
			"ports[0].fixedIPs[0].subnet ports[0].network ports[0].securityGroups[0] ports[0].subnet",
		},
		"tags of a reference":             {`{"network":{"tags":["a,b",""]}}`, "network.tags[0] network.tags[1]"},
		"an image by its description":     {`{"image":{"description":"d"}}`, "image.description"},
		"floating IPs of two kinds":       {`{"floatingIpPool":"ext","floatingIPs":["192.0.2.1"]}`, "floatingIPs"},
		"floating IPs that are none":      {`{"floatingIPs":["192.0.2.1","x"],"ports":[{"id":"a"}]}`, "floatingIPs floatingIPs[1]"},
		"reuse of floating IPs":           {`{"floatingIpReuse":true}`, "floatingIpReuse"},
		"a floating IP on another's port": {`{"floatingIpPool":"ext","ports":[{"id":"a"}]}`, "floatingIpPool"},
	} {
		t.Run(name, func(t *testing.T) {
			raw := with(t, tc.spec)
			_, err := Read(raw, nil, operator())
			wrong, reason := wrongFields(t, err)
			got := strings.Fields(wrong)
			slices.Sort(got)
			want := strings.Fields(tc.wrong)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" || reason != "SPEC_INVALID" {
				t.Errorf("%v (%s): -want +got:\n%s", err, reason, diff)
			}
			// What is proven wrong is found without secrets and environment, too.
			if found := violated(raw, nil, Environment{}); found != strings.Join(want, " ") {
				t.Errorf("Validate finds %s, want %s", found, strings.Join(want, " "))
			}
			if _, err := ReadAccount(raw, nil, operator()); err == nil != accountIsRight(tc.wrong) {
				t.Errorf("the account: %v", err)
			}
		})
	}
}

// accountIsRight says whether none of the wrong fields has to do with the account, or with how a
// spec is read at all.
func accountIsRight(wrong string) bool {
	for _, field := range []string{"colour", "networks", "storage.volume.size", "interface", "identityEndpoint", "tenantID"} {
		if strings.Contains(wrong, field) {
			return false
		}
	}
	return true
}

func TestReadRefusesWhatIsNoObject(t *testing.T) {
	for _, raw := range []string{"", "{", "[]", "null", `"flavor"`, "{}{}"} {
		_, readErr := Read([]byte(raw), nil, operator())
		_, accountErr := ReadAccount([]byte(raw), nil, operator())
		_, defaultErr := Default([]byte(raw))
		for by, err := range map[string]error{"Read": readErr, "ReadAccount": accountErr, "Default": defaultErr} {
			if fields, reason := wrongFields(t, err); reason != "SPEC_INVALID" || fields != "cloudProviderSpec" {
				t.Errorf("%s of %q: %v", by, raw, err)
			}
		}
		if found := violated([]byte(raw), nil, operator()); found != "cloudProviderSpec" {
			t.Errorf("Validate of %q finds %q", raw, found)
		}
	}
}

// TestSecretsAreNotTold gives a canary to every field that may come from a Secret, where it is
// wrong.
func TestSecretsAreNotTold(t *testing.T) {
	const canary = "canary-5f1c"
	for name := range (&fields{}).secret() {
		raw := with(t, fmt.Sprintf(`{%q:%q,"rootDiskSizeGB":0}`, name, canary))
		_, inSpec := Read(raw, nil, Environment{})
		_, inSecret := Read(with(t, `{"rootDiskSizeGB":0}`), secretsOf(map[string]string{name: canary}), Environment{})
		for _, err := range []error{inSpec, inSecret} {
			if err == nil || strings.Contains(err.Error(), canary) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, v := range Validate(raw, nil, Environment{}) {
			if strings.Contains(v.GetDescription(), canary) {
				t.Errorf("%s: %v", name, v)
			}
		}
	}
}

func TestDefault(t *testing.T) {
	for name, tc := range map[string]struct{ raw, want string }{
		"nothing":              {`{}`, `{"configDrive":false}`},
		"the least":            {`{"image":"<a>","flavor":"f"}`, `{"configDrive":false,"flavor":"f","image":"<a>"}`},
		"what is there":        {` {"flavor": "f",  "configDrive": true}`, ` {"flavor": "f",  "configDrive": true}`},
		"what is there, empty": {`{"configDrive":""}`, `{"configDrive":""}`},
		"null is there":        {`{"configDrive":null}`, `{"configDrive":null}`},
		"what is wrong":        {`{"colour":1e400,"flavor":[]}`, `{"colour":1e400,"configDrive":false,"flavor":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			once, err := Default([]byte(tc.raw))
			if err != nil {
				t.Fatal(err)
			}
			if string(once) != tc.want {
				t.Errorf("%s, want %s", once, tc.want)
			}
			twice, err := Default(once)
			if err != nil || string(twice) != string(once) {
				t.Errorf("%s becomes %s, %v", once, twice, err)
			}
		})
	}
}

// TestDefaultsChangeNothingElse: what is read after defaulting is what was read before, but for
// what the default is about.
func TestDefaultsChangeNothingElse(t *testing.T) {
	for _, raw := range []string{metakubeOld, metakubeNew, metakubeGrav} {
		filled, err := Default([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		before, err := Read([]byte(raw), nil, metakubeOperator())
		if err != nil {
			t.Fatal(err)
		}
		after, err := Read(filled, nil, metakubeOperator())
		if err != nil {
			t.Fatal(err)
		}
		before.ConfigDrive = new(bool)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("-before +after:\n%s", diff)
		}
		var fields map[string]any
		if err := json.Unmarshal(filled, &fields); err != nil || fields["configDrive"] != false {
			t.Errorf("%s, %v", filled, err)
		}
	}
}
