// Package network simulates Neutron, OpenStack's network service: networks and their subnets,
// ports, security groups, floating IPs, trunks, routers and quotas. Package compute makes ports and
// binds them to servers; of servers, this package knows only who is told that a port has gone.
//
// service.go has what Neutron holds, routes.go what it serves, and lists.go how all its lists work.
package network
