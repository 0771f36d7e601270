package rig

import (
	"context"
	"path"
	"testing"

	"google.golang.org/grpc"

	"github.com/millwright-dev/millwright/proto/contract"
)

// checker judges each call by its request and its answer.
type checker struct {
	tb     testing.TB
	name   string
	prefix string
}

// intercept judges one call.
//
//nolint:revive // gRPC decides how many parameters an interceptor has
func (c checker) intercept(
	ctx context.Context, method string, request, answer any,
	conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	c.tb.Helper()
	err := invoke(ctx, method, request, answer, conn, options...)
	if err != nil && ctx.Err() != nil {
		return err
	}
	breaches := contract.CheckExchange(contract.Exchange{Driver: c.name, ProviderIDPrefix: c.prefix, Request: request, Answer: answer, Err: err})
	for _, breach := range breaches {
		c.tb.Errorf("%s breaks the contract: %s", path.Base(method), breach)
	}
	return err
}
