package sdk

import (
	"fmt"
	"reflect"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// optional is a feature that a driver offers by implementing an interface of one method.
type optional struct {
	feature driverv1alpha1.Feature
	method  string
	offered func(Driver) bool
}

var optionals = []optional{
	{driverv1alpha1.Feature_FEATURE_LIST, "ListMachines", offers[Lister]},
	{driverv1alpha1.Feature_FEATURE_ADOPT, "AdoptMachine", offers[Adopter]},
	{driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_SCHEMA, "GetProviderSpecSchema", offers[SpecSchema]},
	{driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_DEFAULT, "DefaultProviderSpec", offers[SpecDefaulter]},
	{driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_VALIDATE, "ValidateProviderSpec", offers[SpecValidator]},
	{driverv1alpha1.Feature_FEATURE_INSTANCE_TEMPLATE, "GetInstanceTemplate", offers[InstanceTemplater]},
	{driverv1alpha1.Feature_FEATURE_CONSOLE, "GetConsoleOutput", offers[ConsoleReader]},
}

func offers[T any](d Driver) bool {
	_, ok := d.(T)
	return ok
}

// features returns what d offers, in the order of the contract. It fails when d has a method of an
// optional interface's name but not its signature: the feature would be off, and nobody would know
// why.
func features(d Driver) ([]driverv1alpha1.Feature, error) {
	var found []driverv1alpha1.Feature
	for _, o := range optionals {
		if o.offered(d) {
			found = append(found, o.feature)
			continue
		}
		if reflect.ValueOf(d).MethodByName(o.method).IsValid() {
			return nil, fmt.Errorf("driver %T: its method %s has another signature than this package's interface for it", d, o.method)
		}
	}
	// The SDK itself fences, for every driver.
	found = append(found, driverv1alpha1.Feature_FEATURE_LEADER_FENCING)
	if reflect.ValueOf(d).MethodByName("Probe").IsValid() && !offers[Prober](d) {
		return nil, fmt.Errorf("driver %T: its method Probe has another signature than Prober's", d)
	}
	return found, nil
}
