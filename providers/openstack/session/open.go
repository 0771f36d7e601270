package session

import (
	"fmt"
	"net/url"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
)

// Session is an account's way into its project. It is safe for concurrent use; nobody may change
// it. Its clients share the token, the project's bounds and the counting; their errors go through
// [Explain].
type Session struct {
	// ProjectID is the project that the credentials open, by Keystone's answer.
	ProjectID string
	// Region is the one that the session works in.
	Region string
	// Compute is Nova, at the version asked for.
	Compute *gophercloud.ServiceClient
	// Network is Neutron v2.0.
	Network *gophercloud.ServiceClient
	// Image is Glance v2.
	Image *gophercloud.ServiceClient
	// Volume is Cinder v3; nil where the cloud has no block storage.
	Volume *gophercloud.ServiceClient

	where   places
	lookups lookups
	shared  *project
}

// newSession makes the clients. It asks nobody.
func newSession(l *login, where places, shared *project, version string) (*Session, error) {
	s := &Session{ProjectID: where.project, Region: where.region, where: where, lookups: newLookups(l.options.Clock), shared: shared}
	for _, one := range []struct {
		service, at string
		make        func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)
		into        **gophercloud.ServiceClient
	}{
		{serviceCompute, where.compute, openstack.NewComputeV2, &s.Compute},
		{serviceNetwork, where.network, openstack.NewNetworkV2, &s.Network},
		{serviceImage, where.image, openstack.NewImageV2, &s.Image},
		{serviceVolume, where.volume, openstack.NewBlockStorageV3, &s.Volume},
	} {
		if one.at == "" {
			continue
		}
		home, err := url.Parse(one.at)
		if err != nil {
			return nil, fmt.Errorf("read the URL of the %s service: %w", one.service, err)
		}
		provider := l.client(&authTransport{login: l, project: where.project, home: home, next: &wire{
			options: l.options, service: one.service, next: l.next, bounds: shared.services[one.service],
		}})
		provider.EndpointLocator = func(gophercloud.EndpointOpts) (string, error) { return one.at, nil }
		client, err := one.make(provider, gophercloud.EndpointOpts{})
		if err != nil {
			return nil, fmt.Errorf("make the client of the %s service: %w", one.service, err)
		}
		*one.into = client
	}
	s.Compute.Microversion = version
	return s, nil
}
