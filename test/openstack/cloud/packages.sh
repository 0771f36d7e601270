# shellcheck shell=bash
# What Debian 12 has to have installed (OpenStack's release Zed).

packages=(
  python3-keystone python3-glance glance-common python3-placement placement-common
  python3-nova nova-common python3-neutron neutron-common python3-cinder cinder-common
  mariadb-server rabbitmq-server ovn-central
  uwsgi-core uwsgi-plugin-python3 python3-pymysql python3-openstackclient curl procps
)
if [ "$compute" = libvirt ]; then
  packages+=(
    libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients python3-libvirt qemu-system-x86 qemu-utils
    neutron-linuxbridge-agent genisoimage dosfstools ipset bridge-utils sudo
  )
fi
readonly packages

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null)" != installed ]; then echo "$package"; fi
  done
}

# install_packages installs what is missing, without starting any of Debian's own services.
install_packages() {
  local missing policy=/usr/sbin/policy-rc.d
  mapfile -t missing < <(missing_packages)
  if [ "${#missing[@]}" -eq 0 ]; then return; fi
  command -v apt-get > /dev/null || die "these packages of Debian 12 are missing: ${missing[*]}"
  [ "$(id -u)" -eq 0 ] || die "only root can install: ${missing[*]}"
  say "installing ${#missing[@]} packages and what they need, about two minutes: $logs/apt.log"
  if [ ! -e "$policy" ]; then
    # Debian asks this program whether a service may start.
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  fi
  apt-get update > "$logs/apt.log" 2>&1 || true # an old list may still do
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    -o Dpkg::Options::=--force-confold "${missing[@]}" >> "$logs/apt.log" 2>&1 || die "apt-get failed: see $logs/apt.log"
  if [ -n "$(trap -p EXIT)" ]; then
    rm -f "$policy"
    trap - EXIT
  fi
  say "packages installed"
}
