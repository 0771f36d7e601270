package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	certutil "k8s.io/client-go/util/cert"
)

// Certificates shows in millwright_certificate_expiry_timestamp_seconds until when the certificates
// in some files are valid, by the names given. Files are read for each scrape, so that it shows
// what new connections use; one that cannot be read has no value.
func Certificates(registry prometheus.Registerer, files map[string]string) error {
	all := &Registration{Registry: registry}
	Register(all, &certificates{files: files, expiry: prometheus.NewDesc(
		"millwright_certificate_expiry_timestamp_seconds", "Until when a certificate is valid, in seconds since 1970.", []string{"certificate"}, nil,
	)})
	return all.Err
}

type certificates struct {
	files  map[string]string
	expiry *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *certificates) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- c.expiry
}

// Collect implements prometheus.Collector.
func (c *certificates) Collect(values chan<- prometheus.Metric) {
	for name, file := range c.files {
		// The first is the holder's; those of authorities follow.
		if chain, err := certutil.CertsFromFile(file); err == nil {
			values <- prometheus.MustNewConstMetric(c.expiry, prometheus.GaugeValue, float64(chain[0].NotAfter.Unix()), name)
		}
	}
}
