// Package judge decides whether Millwright kept its promises in a history of chaos. It reads what
// others wrote down: etcd's own history of each object, the cloud's ledger, the API server's audit
// log, and what chaos itself did. It imports nothing of core, and counts for itself.
//
// The promises, and what exactly they are held to, stand in docs/chaos.md.
package judge
