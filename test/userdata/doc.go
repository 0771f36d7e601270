// Package userdata holds user data to what reads it: cloud-init's own schema and YAML parser,
// Ignition's own validator, the kubelet's strict decoder, containerd's TOML parser, shellcheck and
// systemd. core/bootstrap renders it from generated specs, hostile strings included, and each value
// must be found in its field and nowhere else.
//
// Ignition itself sets up the root folder of a Flatcar machine.
//
// The long tests need cloud-init, shellcheck, systemd, curl and Ignition, which `make userdata`
// installs and builds, and root.
package userdata
