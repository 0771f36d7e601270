package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Provider makes spans. Shut it down at the end: spans that were not sent yet are lost otherwise.
type Provider struct {
	trace.TracerProvider
	close func(context.Context) error
}

// New returns a provider that sends spans to the collector at endpoint by OTLP over gRPC:
// https://host:port, or unix:///absolute/path. With an empty endpoint its spans go nowhere and cost
// nothing. service and version say whose they are.
//
// A collector that is away is no error: spans are kept for a while, then dropped, and log is told.
// The environment variables OTEL_TRACES_SAMPLER, OTEL_BSP_*, OTEL_RESOURCE_ATTRIBUTES and
// OTEL_EXPORTER_OTLP_* hold as far as endpoint does not say otherwise. Source: the OpenTelemetry
// specification's "Environment Variable Specification".
func New(ctx context.Context, endpoint, service, version string, log *slog.Logger) (*Provider, error) {
	if endpoint == "" {
		return &Provider{TracerProvider: noop.NewTracerProvider(), close: func(context.Context) error { return nil }}, nil
	}
	way, err := parse(endpoint)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracegrpc.New(ctx, way...)
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: %w", endpoint, err)
	}
	whose, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", service), attribute.String("service.version", version)),
		resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, errors.Join(err, exporter.Shutdown(ctx))
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are lost", "endpoint", endpoint, "error", err.Error()) }))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(whose))
	return &Provider{TracerProvider: provider, close: provider.Shutdown}, nil
}

// Shutdown sends what was not sent yet, until ctx ends. Spans that are made later are lost.
func (p *Provider) Shutdown(ctx context.Context) error { return p.close(ctx) }

// parse reads an endpoint; an error says what to write instead.
func parse(endpoint string) ([]otlptracegrpc.Option, error) {
	if path, isUnix := strings.CutPrefix(endpoint, "unix://"); isUnix {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("endpoint %q: write the socket as unix:///absolute/path", endpoint)
		}
		return []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(endpoint), otlptracegrpc.WithInsecure()}, nil
	}
	at, err := url.Parse(endpoint)
	if err != nil || at.Scheme != "https" || at.Port() == "" || strings.Trim(at.Path, "/") != "" {
		return nil, fmt.Errorf("endpoint %q: write https://host:port, or unix:///absolute/path for a collector on this machine; plaintext TCP is refused", endpoint)
	}
	// As a URL it overrules what the environment says of TLS.
	return []otlptracegrpc.Option{otlptracegrpc.WithEndpointURL("https://" + at.Host)}, nil
}
