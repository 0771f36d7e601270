// Package etcdlog reads the history of a cluster's objects from etcd itself: each change, in order,
// none left out and none twice, also while the API server is away. A watch through the API server
// cannot promise that once it has restarted.
package etcdlog
