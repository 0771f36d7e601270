# shellcheck shell=bash
# OPENSTACK_COMPUTE=libvirt: servers that boot, in QEMU without KVM.

# The files of libvirtd. It knows some of these folders by name alone: it sees its own
# ones there, in a mount namespace.
start_libvirt() {
  local own=$state/libvirt
  mkdir -p "$own"/{lib,cache,log} "$sockets/libvirt" /etc/libvirt /run/libvirt /var/lib/libvirt /var/cache/libvirt /var/log/libvirt
  # shellcheck disable=SC2016 # the shell in the namespace expands it
  spawn libvirtd unshare --mount --propagation private sh -euc '
    mount --bind "$1/lib" /var/lib/libvirt
    mount --bind "$1/cache" /var/cache/libvirt
    mount --bind "$1/log" /var/log/libvirt
    mount --bind "$2" /etc/libvirt
    mount --bind "$3" /run/libvirt
    mount --bind "$2/passwd" /etc/passwd
    mount --bind "$2/group" /etc/group
    exec libvirtd --config /etc/libvirt/libvirtd.conf --pid-file "$1/pid"' libvirtd "$own" "$configs/libvirt" "$sockets/libvirt"
  await 60 libvirtd virsh -c "qemu+unix:///system?socket=$sockets/libvirt/libvirt-sock" list
}

write_libvirt_configuration() {
  # shellcheck disable=SC2034 # the templates read it
  local privsep="privsep-helper --config-file $configs/nova.conf --config-file $configs/nova-libvirt.conf"
  mkdir -p "$configs/libvirt/qemu" "$state/nova/instances"
  render libvirtd.conf libvirt/libvirtd.conf
  render qemu.conf libvirt/qemu.conf
  # libvirtd wants them even where QEMU is run as root.
  { getent passwd; echo "libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin"; } > "$configs/libvirt/passwd"
  { getent group; echo "libvirt-qemu:x:64055:"; } > "$configs/libvirt/group"
  render nova-libvirt.conf nova-libvirt.conf
  # The agent filters ARP with ebtables, which not each kernel has. Nobody here forges it.
  mkdir -p "$state/bin"
  printf '#!/bin/sh\n' > "$state/bin/ebtables"
  chmod 755 "$state/bin/ebtables"
  privsep="privsep-helper --config-file $configs/neutron.conf --config-file $configs/neutron-linuxbridge.conf"
  render neutron-linuxbridge.conf neutron-linuxbridge.conf
}

# start_compute HOST: nova-compute, and the agent that puts its servers on bridges.
start_compute() {
  service "nova-compute-$1" nova.cmd.compute --config-file "$configs/nova.conf" --config-file "$configs/nova-libvirt.conf" --config-file "$configs/nova-$1.conf"
  spawn linuxbridge-agent env PATH="$state/bin:$PATH" neutron-linuxbridge-agent --config-file "$configs/neutron.conf" --config-file "$configs/neutron-linuxbridge.conf" \
    --config-file "$configs/nova-$1.conf"
}

# end_servers kills the servers' processes, which outlive libvirtd.
end_servers() {
  local file pid
  for file in "$sockets"/libvirt/qemu/*.pid; do
    [ -s "$file" ] || continue
    pid=$(< "$file")
    if tr '\0' ' ' < "/proc/$pid/cmdline" 2> /dev/null | grep -qF "$state/"; then kill -KILL "$pid"; fi
    rm -f "$file"
  done
}
