package connection

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/millwright-dev/millwright/proto/redact"
)

// redacting is next without the secrets that went with a call in what the driver says to people: in
// errors, and in answers. A driver, in whatever language, or its cloud may repeat what it was
// sent. From here on its words go to conditions, events and logs. Where a call has no secrets,
// those of the latest calls are taken out, which told remembers.
func redacting(told *redact.Memory, next grpc.UnaryClientInterceptor) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, answer any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		secrets := told.Of(request)
		if err := next(ctx, method, request, answer, cc, invoke, opts...); err != nil {
			return secrets.Status(status.Convert(err)).Err()
		}
		original, _ := answer.(proto.Message)
		clean, _ := secrets.Answer(answer).(proto.Message)
		if clean != original {
			proto.Reset(original)
			proto.Merge(original, clean)
		}
		return nil
	}
}
