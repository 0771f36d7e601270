package sdk

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/proto/redact"
)

// contractServices begins the full method of every RPC of the contract.
const contractServices = "/millwright."

// guard stands between the wire and the driver.
type guard struct {
	domain      string
	maxUserData int64
	log         *slog.Logger
	metrics     *callMetrics
	// told are the secrets that came with the latest calls.
	told  redact.Memory
	fence epochFence
}

// intercept checks the request, calls the driver, and logs the call. It turns what the driver
// returns into what the contract allows, without the secrets that came with the call.
func (g *guard) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if !strings.HasPrefix(info.FullMethod, contractServices) {
		return handler(ctx, request)
	}
	begin, secrets, names := time.Now(), g.told.Of(request), namesIn(request)
	answer, err := g.call(ctx, request, handler, secrets)
	answer = secrets.Answer(answer)
	if err != nil {
		answer, err = nil, outcome(ctx, g.domain, err, secrets).Err()
	}
	g.metrics.ended(info.FullMethod, err, time.Since(begin))
	g.report(ctx, ended{
		method: info.FullMethod, request: request, answer: answer, err: err, took: time.Since(begin), names: names, secrets: secrets,
	})
	return answer, err
}

// call returns what the driver returned.
func (g *guard) call(ctx context.Context, request any, handler grpc.UnaryHandler, secrets *redact.Secrets) (answer any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			g.log.ErrorContext(ctx, "driver panicked",
				"panic", secrets.Text(describe(cause)), "stack", secrets.Text(string(debug.Stack())))
			err = NewError(driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL, "the driver panicked; its log says where")
		}
	}()
	if err := g.check(request); err != nil {
		return nil, err
	}
	if err := g.fence.admit(request); err != nil {
		return nil, err
	}
	answer, err = handler(ctx, request)
	return withLegacyTypes(answer), err
}

// check returns an error when the request's shape is wrong.
func (g *guard) check(request any) error {
	violations := contract.CheckRequest(request)
	if r, ok := request.(interface{ GetUserData() []byte }); ok {
		violations = append(violations, contract.CheckUserData(r.GetUserData(), g.maxUserData)...)
	}
	if len(violations) == 0 {
		return nil
	}
	reason := driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID
	if violations.TooLarge() {
		reason = driverv1alpha1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE
	}
	fields := make([]ErrorOption, 0, len(violations))
	for _, v := range violations {
		fields = append(fields, WithField(v.Field, v.Description))
	}
	return NewError(reason, violations.Error(), fields...)
}

// describe says what a panic was about. Only the runtime's own words are safe: any other value may
// hold a request.
func describe(cause any) string {
	if err, ok := cause.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", cause)
}

// ended is a call that has ended.
type ended struct {
	method  string
	request any
	answer  any
	err     error
	took    time.Duration
	// names are the request's as it came: the driver may have changed it.
	names   []slog.Attr
	secrets *redact.Secrets
}

// level is Warn for what somebody has to look into, Info for what may have changed the cloud, else
// Debug.
func (e ended) level() slog.Level {
	switch status.Code(e.err) {
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return slog.LevelWarn
	}
	if mutates(e.request) {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// namesIn returns what the log calls a request by.
func namesIn(request any) []slog.Attr {
	var names []slog.Attr
	if r, ok := request.(interface {
		GetMeta() *driverv1alpha1.RequestMeta
	}); ok {
		names = append(names, slog.String("request", r.GetMeta().GetRequestId()))
	}
	if r, ok := request.(interface {
		GetMachine() *driverv1alpha1.MachineRef
	}); ok {
		m := r.GetMachine()
		names = append(names, slog.String("machine", m.GetNamespace()+"/"+m.GetName()), slog.String("uid", m.GetUid()))
	}
	return names
}

// report logs a call, and at level Debug also its messages, redacted.
func (g *guard) report(ctx context.Context, e ended) {
	level := e.level()
	if !g.log.Enabled(ctx, level) {
		return
	}
	attributes := []slog.Attr{
		slog.String("method", e.method), slog.String("code", status.Code(e.err).String()), slog.Duration("took", e.took),
	}
	attributes = append(attributes, e.names...)
	if e.err != nil {
		attributes = append(attributes, slog.String("error", status.Convert(e.err).Message()))
	}
	if g.log.Enabled(ctx, slog.LevelDebug) {
		attributes = append(attributes, slog.Group("messages", "request", e.secrets.Message(e.request), "answer", e.secrets.Message(e.answer)))
	}
	g.log.LogAttrs(ctx, level, "call", attributes...)
}
