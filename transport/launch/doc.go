// Package launch starts a driver as a process of one's own, with hashicorp/go-plugin: whom it is
// started by it knows by a cookie in its environment, and both sides secure their connection with
// certificates made for it.
//
// A driver that was started does not outlive who started it, is ended gracefully, and takes what it
// has started along. That is no isolation: it runs as the same user, on the same machine.
package launch
