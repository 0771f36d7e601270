package driver

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/millwright-dev/millwright/core/instance"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// ErrCannotList says that a driver has no ListMachines.
var ErrCannotList = errors.New("the driver cannot list machines")

// OwnedResource is what an account holds for one uid.
type OwnedResource struct {
	// Machine is whom it was made for, as it is to be deleted: with the spec and the secrets of the
	// account.
	Machine Machine
	// ClusterUID is the cluster's that it belongs to.
	ClusterUID string
	// ProviderIDs are those of all VMs of the uid, in all their forms; there is none where only
	// leftovers are there.
	ProviderIDs []string
	// Created is zero where the driver does not say.
	Created time.Time
	// Busy: a mutation of this uid is under way in this process.
	Busy bool
}

// ListOwned lists all that the account of m's spec and secrets holds of this cluster, whether a
// Machine is known for it or not. It waits for the driver's answers. An error, ErrCannotList or
// *instance.Failure, means that nothing is known: a list that is not complete, or that holds
// anything that it must not, is none.
func (d *Driver) ListOwned(ctx context.Context, m Machine) ([]OwnedResource, error) {
	s, err := d.lister()
	if err != nil {
		return nil, err
	}
	return d.listOwned(ctx, s, m)
}

// listOwned is ListOwned by a session.
func (d *Driver) listOwned(ctx context.Context, s *session, m Machine) ([]OwnedResource, error) {
	machines, failure := d.listPages(ctx, s, m)
	if failure != nil && failure.Class == instance.Unimplemented {
		return nil, ErrCannotList
	}
	if failure != nil {
		return nil, failure
	}
	all := make([]OwnedResource, 0, len(machines))
	for uid, listed := range machines {
		one, failure := d.ownedResource(s, m, listed)
		if failure != nil {
			return nil, failure
		}
		d.mu.Lock()
		record, known := d.calls[uid]
		one.Busy = known && record.underWay
		d.mu.Unlock()
		all = append(all, one)
	}
	return all, nil
}

// lister returns the session to list by.
func (d *Driver) lister() (*session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if why := d.unreadyReason(); why != "" {
		return nil, unavailable("DriverNotReady", why)
	}
	if !d.session.caps.Has(driverv1alpha1.Feature_FEATURE_LIST) || d.session.cannotList.Load() {
		return nil, ErrCannotList
	}
	return d.session, nil
}

func (d *Driver) ownedResource(s *session, account Machine, listed *driverv1alpha1.Machine) (OwnedResource, *instance.Failure) {
	account.Namespace, account.Name = listed.GetRef().GetNamespace(), listed.GetRef().GetName()
	account.UID, account.ProviderID = listed.GetRef().GetUid(), listed.GetProviderId()
	account.LastKnownState = listed.GetLastKnownState()
	found, failure := d.reader(s).machine(account, listed)
	if failure != nil {
		return OwnedResource{}, failure
	}
	one := OwnedResource{Machine: account, ClusterUID: listed.GetClusterUid(), ProviderIDs: found.DuplicateProviderIDs}
	if found.ProviderID != "" {
		one.ProviderIDs = slices.Concat([]string{found.ProviderID}, found.ProviderIDAliases, one.ProviderIDs)
	}
	// A time at or before 1970 was not filled in: nothing may seem old for that.
	if created := listed.GetCreateTime(); created.IsValid() && created.AsTime().Unix() > 0 {
		one.Created = created.AsTime()
	}
	return one, nil
}

// Account tells accounts apart, as far as core can: two machines with the same spec and secrets are
// in one. It means nothing outside this process.
func Account(m Machine) uint64 { return uint64(accountOf(m)) }

// Names are those of the configured drivers, sorted.
func (d *Drivers) Names() []string { return d.have }
