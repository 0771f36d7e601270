// Package driverstatus is what the manager that leads publishes of its drivers, in a ConfigMap
// beside its Lease, and how it is read again.
package driverstatus

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	// ConfigMapName is the name of the ConfigMap. It has a key for each driver: its name.
	ConfigMapName = "millwright-drivers"
	// LeaseName is the name of the Lease. Whoever holds it publishes.
	LeaseName = "millwright-manager"
)

// Driver is one configured driver.
type Driver struct {
	// Name is the driver's, and the cloudProvider that it serves.
	Name string `json:"-"`
	// Address is where the manager finds it, without what follows a "?".
	Address string `json:"address"`
	// Ready says whether it takes calls, and Since from when on that has been so.
	Ready bool        `json:"ready"`
	Since metav1.Time `json:"since"`
	// Reason says, for people, why it is not ready.
	Reason string `json:"reason,omitempty"`
	// Version is the driver's own; empty for one that was never reached, as are all that follow.
	Version string `json:"version,omitempty"`
	// Features are those of the contract's enum that it announced, without their prefix.
	Features []string `json:"features,omitempty"`
	// MaxConcurrentRequests is how many calls it gets at once.
	MaxConcurrentRequests int `json:"maxConcurrentRequests,omitempty"`
}

// Encode returns the data of the ConfigMap.
func Encode(drivers []Driver) (map[string]string, error) {
	data := map[string]string{}
	for _, d := range drivers {
		text, err := yaml.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("driver %q: %w", d.Name, err)
		}
		data[d.Name] = string(text)
	}
	return data, nil
}

// Decode is Encode's inverse; the drivers are sorted by name. What it does not know is left out: a
// later manager may have said more.
func Decode(data map[string]string) ([]Driver, error) {
	drivers := make([]Driver, 0, len(data))
	for name, text := range data {
		d := Driver{Name: name}
		if err := yaml.Unmarshal([]byte(text), &d); err != nil {
			return nil, fmt.Errorf("ConfigMap %s, key %q: %w", ConfigMapName, name, err)
		}
		drivers = append(drivers, d)
	}
	slices.SortFunc(drivers, func(a, b Driver) int { return strings.Compare(a.Name, b.Name) })
	return drivers, nil
}
