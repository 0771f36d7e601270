// Package metrics registers the metrics of controllers.
package metrics
