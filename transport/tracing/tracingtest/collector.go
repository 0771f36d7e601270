// Package tracingtest has a collector of traces for tests.
package tracingtest

import (
	"context"
	"net"
	"sync"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Span is a span, and the service that made it.
type Span struct {
	*tracev1.Span
	Service string
}

// Attribute returns the value of a text attribute; empty for none.
func (s Span) Attribute(key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// Collector receives spans by OTLP over gRPC and keeps them.
type Collector struct {
	collectorv1.UnimplementedTraceServiceServer

	server *grpc.Server

	mu    sync.Mutex
	spans []Span
}

// Listen serves a collector on the unix socket at path, until Stop.
func Listen(path string) (*Collector, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	c := &Collector{server: grpc.NewServer()}
	collectorv1.RegisterTraceServiceServer(c.server, c)
	go func() { _ = c.server.Serve(listener) }()
	return c, nil
}

// Stop ends it.
func (c *Collector) Stop() { c.server.Stop() }

// Export takes spans over.
func (c *Collector) Export(_ context.Context, r *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.GetResourceSpans() {
		service := ""
		for _, a := range of.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, within := range of.GetScopeSpans() {
			for _, s := range within.GetSpans() {
				c.spans = append(c.spans, Span{Span: s, Service: service})
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// Spans returns what has been received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}
