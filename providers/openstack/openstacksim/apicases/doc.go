// Package apicases holds the proof that the simulator answers as OpenStack does: one suite of
// cases, scripts of requests, whose transcripts are compared with testdata/RELEASE.golden.
//
// The golden file is a recording of real services. TestSimulator compares the simulator with it, in
// every run of the tests. TestServices compares real services with it where the environment
// variable MILLWRIGHT_OPENSTACK is set. The variable names the environment.json of a cloud that
// test/openstack has brought up. TestServices records the file anew where
// MILLWRIGHT_OPENSTACK_RECORD is set as well. What differs from one run to the next, ids and times
// above all, stands in the transcript by a name.
package apicases
