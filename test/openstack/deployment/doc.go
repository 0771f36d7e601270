// Package deployment handles the cloud of real services that test/openstack/up.sh has brought up,
// for tests that are run against it: it makes its services fail, breaks their answers and counts
// what they are asked.
//
// The environment variable MILLWRIGHT_OPENSTACK names the cloud's environment.json; tests skip
// where it is not set.
package deployment
