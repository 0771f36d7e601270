// Package transport is how a driver is reached: over a unix socket, over TCP with TLS on both
// sides, or by starting it. Who calls drivers sees one small interface; which kind it is stands in
// the address.
//
// A connection never reconnects by itself: whoever answers next on the same address has to say
// first who it is.
package transport
