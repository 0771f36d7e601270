// Package chaos proves Millwright by killing it: seeded rounds in which processes are killed and
// stopped, connections cut and the cloud misbehaves while users go on working. What the proof is,
// and how to read it, stands in docs/chaos.md.
//
//	plan     what happens in a round: a pure value, drawn from a seed
//	arena    carries plans out on a whole Millwright of its own, and puts all right again
//	etcdlog  each change of each object, from etcd itself
//	detour   connections that can be broken
//	judge    whether Millwright kept its promises
//	cmd      the command behind `make chaos`
package chaos
