package driver

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-dev/millwright/core/roster"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// news tells that what Roster says has changed. What nobody has heard yet is told once.
type news struct{ changed chan struct{} }

func newNews() *news { return &news{changed: make(chan struct{}, 1)} }

func (n *news) spread() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// Changed gets a value after what Roster says has changed, one for all changes since the last. There is one channel, for one
// reader, and it is never closed.
func (d *Drivers) Changed() <-chan struct{} { return d.news.changed }

// Roster tells how each driver is doing, sorted by name.
func (d *Drivers) Roster() []roster.Driver {
	drivers := make([]roster.Driver, 0, len(d.have))
	for _, name := range d.have {
		drivers = append(drivers, d.drivers[name].entry())
	}
	return drivers
}

// entry is the driver's in the roster.
func (d *Driver) entry() roster.Driver {
	d.mu.Lock()
	defer d.mu.Unlock()
	address, _, _ := strings.Cut(d.connector.target.Address, "?")
	entry := roster.Driver{
		Name: d.name, Address: address, Ready: d.why == "", Since: metav1.NewTime(d.since), Reason: d.why, Version: d.caps.VendorVersion,
	}
	if d.caps.VendorVersion == "" {
		return entry
	}
	entry.MaxConcurrentRequests = d.caps.MaxConcurrentRequests
	for _, feature := range d.caps.Features {
		entry.Features = append(entry.Features, strings.TrimPrefix(driverv1alpha1.Feature_name[int32(feature)], "FEATURE_"))
	}
	return entry
}
