package driver

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-dev/millwright/core/driverstatus"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// statusChanges tells that what Statuses says has changed. What nobody has heard yet is told once.
type statusChanges struct{ changed chan struct{} }

func newStatusChanges() *statusChanges { return &statusChanges{changed: make(chan struct{}, 1)} }

func (n *statusChanges) notify() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// Changed gets a value after what Statuses says has changed, one for all changes since the last.
// There is one channel, for one reader, and it is never closed.
func (d *Drivers) Changed() <-chan struct{} { return d.statusChanges.changed }

// Statuses tells how each driver is doing, sorted by name.
func (d *Drivers) Statuses() []driverstatus.Driver {
	drivers := make([]driverstatus.Driver, 0, len(d.have))
	for _, name := range d.have {
		drivers = append(drivers, d.drivers[name].status())
	}
	return drivers
}

// status is the driver's own.
func (d *Driver) status() driverstatus.Driver {
	d.mu.Lock()
	defer d.mu.Unlock()
	address, _, _ := strings.Cut(d.connector.target.Address, "?")
	status := driverstatus.Driver{
		Name: d.name, Address: address, Ready: d.why == "", Since: metav1.NewTime(d.since), Reason: d.why, Version: d.caps.VendorVersion,
	}
	if d.caps.VendorVersion == "" {
		return status
	}
	status.MaxConcurrentRequests = d.caps.MaxConcurrentRequests
	for _, feature := range d.caps.Features {
		status.Features = append(status.Features, strings.TrimPrefix(driverv1alpha1.Feature_name[int32(feature)], "FEATURE_"))
	}
	return status
}
