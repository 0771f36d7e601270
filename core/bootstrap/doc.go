// Package bootstrap renders the user data with which a VM becomes a Node. It is pure: the same
// machine, configuration and token give the same bytes.
//
// render.go is where to begin: assemble collects files and units, an encoder writes them in the
// format of the operating system: a cloud-config for Ubuntu and Debian (cloudconfig.go), Ignition
// for Flatcar (ignition.go). The files come from:
//
//	static/          what is the same on every machine, by its path; static.go says for whom
//	kubeconfig.go    the API server, its CA, and the token
//	kubeletflags.go  name, labels and taints
//	kubeletconfig.go the kubelet's configuration; annotations.go what a Machine changes of it
//	containerd.go    containerd's configuration, and registries' mirrors
//	artifacts.go     what is downloaded unless the image brings it
//	network.go       a fixed address, DNS servers
//	system.go        proxy, time, authorities, packages
//	templates.go     what the operator adds or replaces for an operating system
//	own.go           what he adds for all
//
// User data of a user's own is not rendered, but filled in (userdata.go).
//
// One program runs before containerd and the kubelet, at each boot:
// static/common/opt/bin/millwright-bootstrap. What differs between machines it reads from files of
// /etc/millwright, which hold data, never code:
//
//	kubelet-version  without a leading v
//	artifacts        a line for each: architecture, name, version, kind (file, tar, image),
//	                 directory, URL, URL of the sums, SHA-256; "-" for none
//	api-server       its URL
//	not-before       when its CA begins to be valid, in seconds since 1970
//	packages         one a line; absent without any
//	proxy.env        the proxy, as systemd's EnvironmentFile; absent without one
//
// Real encoders and strict checks (check.go) keep a value from leaving its field. The labels are
// only those that a kubelet may give itself; the others are for core to set on the Node.
package bootstrap
