# shellcheck shell=bash disable=SC2034 # others read these
# What the other files agree on: folders, ports, names. up.sh, down.sh and ctl.sh
# read it first. What may be set from outside stands in up.sh.

state=$(realpath -m "${OPENSTACK_DIR:-$source_dir/../../.dev/openstack}")
readonly state
readonly configs=$state/etc logs=$state/log pids=$state/pid sockets=$state/run marks=$state/done
# Sockets lie below the folder, and a socket's path holds 107 bytes.
readonly longest_state=80

# Every service listens on 127.0.0.1. With OPENSTACK_PORT_OFFSET, two clouds fit on
# one machine; with OPENSTACK_PROXY, users go to a port 10000 higher.
readonly offset=${OPENSTACK_PORT_OFFSET:-0}
readonly keystone_port=$((5000 + offset)) glance_port=$((9292 + offset)) placement_port=$((8778 + offset))
readonly nova_port=$((8774 + offset)) neutron_port=$((9696 + offset)) cinder_port=$((8776 + offset))
readonly rabbitmq_port=$((5672 + offset)) erlang_port=$((25672 + offset)) epmd_port=$((14369 + offset)) mariadb_port=$((13306 + offset))
readonly proxy_port=$((15999 + offset))
readonly public_ports=("$keystone_port" "$glance_port" "$placement_port" "$nova_port" "$neutron_port" "$cinder_port")

# What runs servers, and with libvirt the network and its interface that they are on.
readonly compute=${OPENSTACK_COMPUTE:-fake}
# Whether Nova gives each server its user data on a drive.
readonly config_drive=${OPENSTACK_CONFIG_DRIVE:-true}
readonly physical_network=metakube-mmxfcmgjkx physical_interface=phys0

# The password of every user, as of the simulator's.
readonly password=secret

# Debian's own Python: what runs here is its packages.
readonly python=/usr/bin/python3

export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 PYTHONUNBUFFERED=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY

# die MESSAGE: says why, and ends the script.
die() {
  echo "openstack: $*" >&2
  exit 1
}

# say MESSAGE: tells what is done, and how long after the start.
say() {
  printf '%4ds %s\n' "$SECONDS" "$*"
}
