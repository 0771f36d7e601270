// Package alerts has the alerts of deploy/alerts evaluated by Prometheus' own code. Its module is
// one of its own, since Prometheus brings hundreds of others.
package alerts
