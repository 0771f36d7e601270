package machine

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	ctrl "sigs.k8s.io/controller-runtime"
)

// traced makes a span of each reconcile.
type traced struct {
	next   *reconciler
	tracer trace.Tracer
}

// Reconcile reconciles one Machine.
func (t *traced) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, span := t.tracer.Start(ctx, "reconcile Machine", trace.WithAttributes(
		attribute.String("millwright.machine.namespace", req.Namespace), attribute.String("millwright.machine.name", req.Name)))
	defer span.End()
	result, err := t.next.Reconcile(ctx, req)
	if err != nil {
		span.SetStatus(codes.Error, "the log says why")
	}
	return result, err
}
