// Package socket serves gRPC on a unix socket in the file system, so that neither kill -9 nor a
// second process leaves it unusable: a socket that nobody serves any more is taken over, one that
// is alive never. Access is what the socket's mode (0660) and its directory allow.
package socket
