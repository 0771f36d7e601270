package mutant

import (
	"context"
	"io/fs"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/millwright-dev/millwright/proto/contract"
)

// Mutant is a way to break one rule.
type Mutant struct {
	Name string
	// Check is the ID of the check that has to catch it.
	Check string
	// Proxy says that its check has requests to the cloud fail, by a fault proxy.
	Proxy bool
	// Launch says that it takes a driver that the harness has started, and that ends together with
	// the mutant.
	Launch bool
	// Socket is the mode of its unix socket; 0: a good one.
	Socket fs.FileMode
	// TCP is how it secures TCP with the tls.crt, tls.key and ca.crt in a folder; nil: it is not on
	// TCP.
	TCP func(folder string) (credentials.TransportCredentials, error)
	// Accept changes what its unix socket accepts; nil: nothing.
	Accept func(net.Listener) net.Listener
	// Listen is how a process of its own listens on the unix socket at a path, where it is told to
	// serve on one; nil: it does not.
	Listen func(path string) (net.Listener, error)

	// mutate returns what answers in place of next. It is called once per server, and may keep
	// state.
	mutate func(next handler) handler
}

// handler answers a call.
type handler func(ctx context.Context, method string, request proto.Message) (proto.Message, error)

// NewServer returns a server that passes everything on to the driver behind conn, but for what the
// mutant changes. The caller serves and stops it.
func NewServer(m Mutant, conn *grpc.ClientConn, options ...grpc.ServerOption) *grpc.Server {
	handle := m.mutate(forward(conn))
	return grpc.NewServer(append(options, grpc.MaxRecvMsgSize(2*contract.MaxMessageBytes), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		request, _, err := messagesOf(method)
		if err != nil {
			return err
		}
		if err := stream.RecvMsg(request); err != nil {
			return err
		}
		answer, err := handle(stream.Context(), method, request)
		if err != nil {
			return err
		}
		return stream.SendMsg(answer)
	}))...)
}

// forward asks the driver.
func forward(conn *grpc.ClientConn) handler {
	return func(ctx context.Context, method string, request proto.Message) (proto.Message, error) {
		_, answer, err := messagesOf(method)
		if err != nil {
			return nil, err
		}
		return answer, conn.Invoke(ctx, method, request, answer)
	}
}

// messagesOf returns empty messages of the types that a method, as /package.Service/Method, takes
// and returns.
func messagesOf(method string) (request, answer proto.Message, err error) {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil, nil, status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	d, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, nil, status.Errorf(codes.Unimplemented, "%s is no method", method)
	}
	in, err := protoregistry.GlobalTypes.FindMessageByName(d.Input().FullName())
	if err != nil {
		return nil, nil, err
	}
	out, err := protoregistry.GlobalTypes.FindMessageByName(d.Output().FullName())
	if err != nil {
		return nil, nil, err
	}
	return in.New().Interface(), out.New().Interface(), nil
}
