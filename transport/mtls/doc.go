// Package mtls makes TLS configurations of a folder of files, for both ends of a connection between
// core and a driver: TLS 1.3, a certificate on each side, and each side is told who the other one
// has to be.
package mtls
