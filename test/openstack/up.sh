#!/usr/bin/env bash
# Brings up real OpenStack services of Debian 12 (Zed) on 127.0.0.1, without systemd,
# containers or a hypervisor: Keystone, Glance, Placement, Nova, Neutron (ML2/OVN) and
# Cinder. Nova's and Cinder's drivers are fakes that can fail on request. It may be run
# again: what is installed, made or running stays.
#
#   up.sh               all of it
#   up.sh install       installs packages, no more
#
#   OPENSTACK_DIR               where state, logs and clouds.yaml go   .dev/openstack
#   OPENSTACK_PROXY             bin/fault-proxy: users' requests go through it   none
#   OPENSTACK_TOKEN_EXPIRATION  how long a token is good, in seconds   3600
#   OPENSTACK_PORT_OFFSET       added to every port                    0
#   OPENSTACK_COMPUTE           fake, or libvirt: servers boot         fake
#   OPENSTACK_NODE_IMAGE        libvirt: tools/nodeimage's folder      none
#   OPENSTACK_CONFIG_DRIVE      libvirt: false plants a fault, for     true
#                               servers then find no user data
#
# With libvirt, one host runs servers in QEMU, and Neutron has Linux bridges in OVN's
# place: the network metakube-mmxfcmgjkx is the interface phys0, which the caller has
# made. Run it in a network namespace of its own then.
#
# Afterwards OPENSTACK_DIR has clouds.yaml and openrc (users demo, alt, admin; password
# secret) and environment.json, which tests read: MILLWRIGHT_OPENSTACK names it.
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly source_dir
# shellcheck source=cloud/settings.sh
source "$source_dir/cloud/settings.sh"
# shellcheck source=cloud/processes.sh
source "$source_dir/cloud/processes.sh"
# shellcheck source=cloud/packages.sh
source "$source_dir/cloud/packages.sh"
# shellcheck source=cloud/configuration.sh
source "$source_dir/cloud/configuration.sh"
# shellcheck source=cloud/infrastructure.sh
source "$source_dir/cloud/infrastructure.sh"
# shellcheck source=cloud/schemas.sh
source "$source_dir/cloud/schemas.sh"
# shellcheck source=cloud/services.sh
source "$source_dir/cloud/services.sh"
# shellcheck source=cloud/libvirt.sh
source "$source_dir/cloud/libvirt.sh"

# The hosts that Nova believes in; world.json says in which zone each is. One machine is
# one host to libvirt.
hosts=(compute1 compute2)
if [ "$compute" = libvirt ]; then hosts=(compute2); fi
readonly hosts
proxy=${OPENSTACK_PROXY:+$(realpath "$OPENSTACK_PROXY")}
readonly proxy public_offset=$((${#proxy} > 0 ? 10000 : 0))

[ ${#state} -le "$longest_state" ] || die "OPENSTACK_DIR is too long for the sockets below it: $state"
mkdir -p "$configs" "$logs" "$pids" "$sockets" "$marks" "$state"/{lock,glance,nova,neutron,cinder}
install_packages
if [ "${1:-}" = install ]; then exit; fi
ours rabbitmq "$rabbitmq_port"
ours mariadb "$mariadb_port"
ours keystone "$keystone_port"
write_configuration
start_infrastructure
create_schemas
start_services
write_access
say "ready: . $state/openrc"
