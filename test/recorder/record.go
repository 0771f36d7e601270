// Package recorder stands between a manager and its driver, and keeps what secrets the driver is
// sent. It speaks the contract and changes nothing.
package recorder

import (
	"context"
	"fmt"
	"maps"
	"net"
	"path"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// Request is what one call to the driver came with.
type Request struct {
	// Method is the call's name, such as ListMachines.
	Method string
	// Spec is the provider spec of the request; empty where it has none.
	Spec string
	// Secrets are the request's.
	Secrets map[string]string
}

// Recorder is a driver's address that records. It is safe for concurrent use.
type Recorder struct {
	server *grpc.Server
	conn   *grpc.ClientConn

	mu    sync.Mutex
	calls map[string]int
	kept  []Request
}

// Start serves on a unix socket's path what the driver on another address serves, until Stop.
func Start(at, driver string) (*Recorder, error) {
	conn, err := grpc.NewClient(driver, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(2*contract.MaxMessageBytes)))
	if err != nil {
		return nil, fmt.Errorf("connect to the driver: %w", err)
	}
	listener, err := net.Listen("unix", at)
	if err != nil {
		return nil, fmt.Errorf("open the recorder's socket: %w", err)
	}
	r := &Recorder{conn: conn, calls: map[string]int{}}
	r.server = grpc.NewServer(grpc.MaxRecvMsgSize(2*contract.MaxMessageBytes), grpc.UnknownServiceHandler(r.pass))
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

// Stop ends it, and the calls under way.
func (r *Recorder) Stop() error {
	r.server.Stop()
	return r.conn.Close()
}

// Calls counts the calls so far, by method.
func (r *Recorder) Calls() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.calls)
}

// Entrusted returns the requests so far that came with secrets.
func (r *Recorder) Entrusted() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Request(nil), r.kept...)
}

// pass hands a call on.
func (r *Recorder) pass(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	request, answer, err := messagesOf(method)
	if err != nil {
		return err
	}
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	r.record(path.Base(method), request)
	ctx := stream.Context()
	if sent, has := metadata.FromIncomingContext(ctx); has {
		ctx = metadata.NewOutgoingContext(context.WithoutCancel(ctx), sent)
		if deadline, has := stream.Context().Deadline(); has {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline)
			defer cancel()
		}
	}
	if err := r.conn.Invoke(ctx, method, request, answer); err != nil {
		return err
	}
	return stream.SendMsg(answer)
}

func (r *Recorder) record(method string, request proto.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[method]++
	provided, has := request.(interface {
		GetProvider() *driverv1alpha1.ProviderContext
	})
	if !has || len(provided.GetProvider().GetSecrets()) == 0 {
		return
	}
	kept := Request{Method: method, Spec: string(provided.GetProvider().GetProviderSpec()), Secrets: map[string]string{}}
	for name, value := range provided.GetProvider().GetSecrets() {
		kept.Secrets[name] = string(value)
	}
	r.kept = append(r.kept, kept)
}

// messagesOf returns empty messages of the types that a method, as /package.Service/Method, takes
// and returns.
func messagesOf(method string) (request, answer proto.Message, err error) {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	d, is := found.(protoreflect.MethodDescriptor)
	if err != nil || !is {
		return nil, nil, status.Errorf(codes.Unimplemented, "unknown method %s", method)
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
