package launch

import (
	"context"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// Handshake is what a driver recognizes by that it was started. Its version means only how to start
// one; what a driver can do it tells over the contract's own handshake.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  1,
	MagicCookieKey:   "MILLWRIGHT_DRIVER",
	MagicCookieValue: "f3a1c05e9d6b47c2b8e0a4d7516f9c38",
}

// Plugins are what go-plugin is told that is served: nothing but the contract, on the same
// connection.
func Plugins() plugin.PluginSet { return plugin.PluginSet{"driver": contractOnly{}} }

// contractOnly is a plugin without anything of its own.
type contractOnly struct {
	plugin.NetRPCUnsupportedPlugin
}

// GRPCServer implements plugin.GRPCPlugin.
func (contractOnly) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

// GRPCClient implements plugin.GRPCPlugin.
func (contractOnly) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return struct{}{}, nil
}
