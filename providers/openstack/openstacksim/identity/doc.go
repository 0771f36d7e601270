// Package identity simulates Keystone, OpenStack's identity service: users, each with one project,
// their tokens and application credentials, and the catalog that says where the services are.
package identity
