package driver_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/cloud"
	"github.com/millwright-dev/millwright/providers/fake/driver"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/rig"
)

func (w *world) specs(options ...driver.Option) driverv1alpha1.ProviderSpecServiceClient {
	d := driver.New("test", fakecloudv1alpha1.NewCloudServiceClient(w.conn), options...)
	return driverv1alpha1.NewProviderSpecServiceClient(rig.Start(w.T, d))
}

func TestDefaultsAreFilledInOnce(t *testing.T) {
	w := newWorld(t, cloud.Options{})
	for _, test := range []struct{ name, zone, spec, want string }{
		{"the driver's own", "", `{"flavor":"small"}`, `{"flavor":"small","zone":"fake-1a"}`},
		{"another one", "fake-1b", `{"flavor":"small"}`, `{"flavor":"small","zone":"fake-1b"}`},
		{"what is set stays", "fake-1b", `{"zone":"fake-1a"}`, `{"zone":"fake-1a"}`},
		{"what is wrong stays", "", `{"colour":7,"zone":null}`, `{"colour":7,"zone":null}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			specs := (&world{T: t, conn: w.conn}).specs(driver.WithDefaultZone(test.zone))
			spec := test.spec
			for range 2 {
				answer, err := specs.DefaultProviderSpec(t.Context(), &driverv1alpha1.DefaultProviderSpecRequest{Meta: meta(), Provider: provider(spec)})
				if err != nil || string(answer.GetProviderSpec()) != test.want {
					t.Errorf("%s became %s, %v; want %s", spec, answer.GetProviderSpec(), err, test.want)
				}
				spec = test.want
			}
		})
	}
}

func TestSchemaMarksTheKey(t *testing.T) {
	answer, err := newWorld(t, cloud.Options{}).specs().GetProviderSpecSchema(t.Context(), &driverv1alpha1.GetProviderSpecSchemaRequest{})
	if err != nil || !strings.Contains(string(answer.GetJsonSchema()), "writeOnly") {
		t.Errorf("%v, %v", answer, err)
	}
}

func TestValidationNamesEachField(t *testing.T) {
	w := newWorld(t, cloud.Options{Accounts: map[string]string{"good": "a"}})
	specs := w.specs()
	validate := func(online bool, spec, key string) (*driverv1alpha1.ValidateProviderSpecResponse, error) {
		p := provider(spec)
		if key != "" {
			p.Secrets = map[string][]byte{"key": []byte(key)}
		}
		return specs.ValidateProviderSpec(t.Context(), &driverv1alpha1.ValidateProviderSpecRequest{Meta: meta(), Provider: p, Online: online})
	}
	answer, err := validate(true, `{"flavor":"small","colour":"red"}`, "bad")
	if err != nil || len(answer.GetViolations()) != 2 ||
		answer.GetViolations()[0].GetField() != "colour" || answer.GetViolations()[1].GetField() != "image" {
		t.Errorf("wrong fields: %v, %v", answer, err)
	}
	for _, key := range []string{"", "good", "bad"} {
		if answer, err := validate(false, smallSpec, key); err != nil || len(answer.GetViolations()) > 0 {
			t.Errorf("offline, key %q: %v, %v", key, answer, err)
		}
	}
	if answer, err := validate(true, smallSpec, "good"); err != nil || len(answer.GetViolations()) > 0 {
		t.Errorf("online: %v, %v", answer, err)
	}
	_, err = validate(true, smallSpec, "bad")
	w.expectReason(err, codes.Unauthenticated, "CREDENTIALS_INVALID")
}

func TestKeyInTheSpec(t *testing.T) {
	w := newWorld(t, cloud.Options{Accounts: map[string]string{"good": "a"}})
	create := createRequest("m1")
	create.Provider = provider(`{"flavor":"small","image":"ubuntu-24.04","key":"bad","endpoint":"https://cloud.example"}`)
	_, err := w.machines.CreateMachine(t.Context(), create)
	w.expectReason(err, codes.Unauthenticated, "CREDENTIALS_INVALID")
	create.Provider.Secrets = map[string][]byte{"key": []byte("good")}
	if _, err := w.machines.CreateMachine(t.Context(), create); err != nil {
		t.Errorf("a Secret does not win: %v", err)
	}
}

func TestTheTemplateSaysWhatAFlavorOffers(t *testing.T) {
	w := newWorld(t, cloud.Options{})
	specs := w.specs()
	template := func(spec string) (*driverv1alpha1.InstanceTemplate, error) {
		answer, err := specs.GetInstanceTemplate(t.Context(), &driverv1alpha1.GetInstanceTemplateRequest{Meta: meta(), Provider: provider(spec)})
		return answer.GetTemplate(), err
	}
	got, err := template(`{"flavor":"large","image":"ubuntu-24.04","zone":"fake-1b"}`)
	if err != nil || got.GetInstanceType() != "large" || got.GetCapacity()["cpu"] != "8" || got.GetCapacity()["memory"] != "16Gi" ||
		got.GetLabels()["topology.kubernetes.io/zone"] != "fake-1b" {
		t.Errorf("%v, %v", got, err)
	}
	_, err = template(`{"flavor":"huge","image":"ubuntu-24.04"}`)
	w.expectReason(err, codes.FailedPrecondition, "DEPENDENCY_NOT_FOUND")
	_, err = template(`{"flavor":"large"}`)
	w.expectReason(err, codes.InvalidArgument, "SPEC_INVALID")
}
