package driver

import (
	"fmt"
	"strings"

	"github.com/millwright-dev/millwright/proto/contract"
	"github.com/millwright-dev/millwright/transport"
)

// Target is where a driver is: one --driver flag.
type Target struct {
	// Name is the driver's name and the value of cloudProvider that selects it.
	Name string
	// Address is a scheme and what it reaches, e.g. unix:///run/millwright/mycloud.sock: see
	// transport.Parse.
	Address string
}

// ParseTarget reads NAME=ADDRESS. An error says what to write instead.
func ParseTarget(flag string) (Target, error) {
	name, address, found := strings.Cut(flag, "=")
	if !found {
		return Target{}, fmt.Errorf("driver %q: write NAME=ADDRESS, e.g. mycloud=unix:///run/millwright/mycloud.sock", flag)
	}
	if !contract.ValidDriverName(name) {
		return Target{}, fmt.Errorf("driver %q: the name %q must be of small letters, digits and dashes and begin with a letter", flag, name)
	}
	if _, err := transport.Parse(address, transport.Options{}); err != nil {
		return Target{}, fmt.Errorf("driver %q: %w", flag, err)
	}
	return Target{Name: name, Address: address}, nil
}

// String is ParseTarget's inverse.
func (t Target) String() string {
	return t.Name + "=" + t.Address
}

// UnknownError says that no driver is configured for a provider. It stays so until core is started
// with one.
type UnknownError struct {
	// Provider is the name that was asked for.
	Provider string
	// Have are the names of the configured drivers, sorted.
	Have []string
}

// Error names the provider and the drivers there are.
func (e *UnknownError) Error() string {
	have := "none is configured"
	if len(e.Have) > 0 {
		have = "there are: " + strings.Join(e.Have, ", ")
	}
	return fmt.Sprintf("no driver for cloudProvider %q (%s)", e.Provider, have)
}
