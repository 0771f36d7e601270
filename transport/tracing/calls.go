package tracing

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const scope = "github.com/millwright-dev/millwright/transport/tracing"

// format is how a span's identity travels. Source: W3C Trace Context.
var format propagation.TraceContext

// Client makes a span of each call to a driver, and tells the driver of it.
func Client(provider trace.TracerProvider, driver string) grpc.UnaryClientInterceptor {
	tracer := provider.Tracer(scope)
	return func(ctx context.Context, method string, request, answer any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx, span := begin(ctx, tracer, trace.SpanKindClient, method, request)
		if !span.SpanContext().IsValid() {
			return invoke(ctx, method, request, answer, cc, opts...)
		}
		defer span.End()
		span.SetAttributes(attribute.String("millwright.driver", driver))
		sent, _ := metadata.FromOutgoingContext(ctx)
		sent = sent.Copy()
		format.Inject(ctx, carrier(sent))
		err := invoke(metadata.NewOutgoingContext(ctx, sent), method, request, answer, cc, opts...)
		end(span, status.Code(err), func(code codes.Code) bool { return code != codes.OK })
		return err
	}
}

// serversFault are the codes that are a server's errors. Source: OpenTelemetry's "Semantic
// conventions for gRPC".
var serversFault = []codes.Code{codes.Unknown, codes.DeadlineExceeded, codes.Unimplemented, codes.Internal, codes.Unavailable, codes.DataLoss}

// Server makes a span of each call of core's, below core's own.
func Server(provider trace.TracerProvider) grpc.UnaryServerInterceptor {
	tracer := provider.Tracer(scope)
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		received, _ := metadata.FromIncomingContext(ctx)
		ctx, span := begin(format.Extract(ctx, carrier(received)), tracer, trace.SpanKindServer, info.FullMethod, request)
		defer span.End()
		answer, err := handler(ctx, request)
		end(span, status.Code(err), func(code codes.Code) bool { return slices.Contains(serversFault, code) })
		return answer, err
	}
}

// begin begins the span of a call.
func begin(ctx context.Context, tracer trace.Tracer, kind trace.SpanKind, fullMethod string, request any) (context.Context, trace.Span) {
	name := strings.TrimPrefix(fullMethod, "/")
	service, method, _ := strings.Cut(name, "/")
	ctx, span := tracer.Start(ctx, name, trace.WithSpanKind(kind))
	if !span.IsRecording() {
		return ctx, span
	}
	span.SetAttributes(attribute.String("rpc.system", "grpc"), attribute.String("rpc.service", service), attribute.String("rpc.method", method))
	if r, ok := request.(interface {
		GetMachine() *driverv1alpha1.MachineRef
	}); ok {
		m := r.GetMachine()
		span.SetAttributes(attribute.String("millwright.machine.namespace", m.GetNamespace()),
			attribute.String("millwright.machine.name", m.GetName()), attribute.String("millwright.machine.uid", m.GetUid()))
	}
	return ctx, span
}

func end(span trace.Span, code codes.Code, failed func(codes.Code) bool) {
	span.SetAttributes(attribute.Int64("rpc.grpc.status_code", int64(code)))
	if failed(code) {
		span.SetStatus(otelcodes.Error, code.String())
	}
}

// carrier carries a span's identity in a call's metadata.
type carrier metadata.MD

// Get implements propagation.TextMapCarrier.
func (c carrier) Get(key string) string {
	if values := metadata.MD(c).Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (c carrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

// Keys implements propagation.TextMapCarrier.
func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}
