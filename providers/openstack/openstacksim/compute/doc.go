// Package compute simulates Nova, OpenStack's compute service: servers with their flavors, ports
// and volumes, server groups and quotas. It makes and binds ports in package network, and makes and
// attaches volumes in package volume.
//
// Three files to begin with: service.go has what Nova holds, routes.go what it serves, and
// lifecycle.go what becomes of a server from its creation to its end. registry.go keeps the
// servers, also those that are gone.
package compute
