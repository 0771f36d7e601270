#!/usr/bin/env bash
# Ends what up.sh started in OPENSTACK_DIR. With -c, removes that folder as well.
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly source_dir
# shellcheck source=cloud/settings.sh
source "$source_dir/cloud/settings.sh"
# shellcheck source=cloud/processes.sh
source "$source_dir/cloud/processes.sh"
# shellcheck source=cloud/libvirt.sh
source "$source_dir/cloud/libvirt.sh"

# Users first, then what they use; those of one line at once.
readonly order=(
  "faultproxy nova-compute-* cinder-volume"
  "linuxbridge-agent libvirtd nova-* cinder-* neutron-server glance-api placement keystone"
  "ovn-chassis ovn-northd ovsdb-* rabbitmq mariadb"
  "epmd"
)

if [ -d "$pids" ]; then
  shopt -s nullglob
  cd "$pids"
  for line in "${order[@]}"; do
    for name in $line; do halt TERM "$name" & done
    wait
  done
  cd /
  end_servers
fi
if [ "${1:-}" = -c ] && [ -d "$marks" ]; then rm -rf "$state"; fi
