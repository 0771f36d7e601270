#!/usr/bin/env bash
# Installs the Debian packages that a part of the tests lacks, before anything is built.
#
#   packages.sh PART...    base, test, race, demo-qemu, userdata, docs, qemu, openstack-boot, all
#
# Only Go and git are needed before. What is found under its name in the PATH is not
# installed, wherever it comes from. Where this user may not install packages, or
# apt-get is missing, the script ends with the one command that does.
set -euo pipefail

# A line is: the parts that need it, what has to be there, the package that brings it.
# What has to be there is a program, or a file where it begins with a slash.
table='
base                             make                           make
base                             gcc                            gcc
base                             /usr/include/stdlib.h          libc6-dev
test,docs,race                   node                           nodejs
test,docs,race                   npm                            npm
test,race                        chromium                       chromium
docs                             jq                             jq
docs,userdata                    curl                           curl
docs                             openstack                      python3-openstackclient
userdata,race                    cloud-init                     cloud-init
userdata                         shellcheck                     shellcheck
userdata                         systemd-analyze                systemd
userdata                         /usr/include/blkid/blkid.h     libblkid-dev
demo-qemu,qemu,race,openstack-boot qemu-system-x86_64             qemu-system-x86
demo-qemu,qemu,race,openstack-boot qemu-img                       qemu-utils
demo-qemu,qemu,openstack-boot    mmdebstrap                     mmdebstrap
demo-qemu,qemu,openstack-boot    mke2fs                         e2fsprogs
qemu,openstack-boot              ip                             iproute2
'

known="base test race demo-qemu userdata docs qemu openstack-boot all"
usage() {
  echo "usage: $0 PART...: $known" >&2
  exit 2
}
[ $# -gt 0 ] || usage
for part in "$@"; do
  case " $known " in *" $part "*) ;; *) usage ;; esac
done

# needed PARTS: whether one of the parts that were asked for is in a line's list. Everything
# needs base.
needed() {
  local part
  for part in base "$@"; do
    case ,$parts, in *",$part,"*) return 0 ;; esac
    [ "$part" != all ] || return 0
  done
  return 1
}

there() {
  case $1 in
    /*) [ -e "$1" ] ;;
    gcc) command -v "${CC:-gcc}" >/dev/null ;;
    *) command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ] ;;
  esac
}

missing=()
while read -r parts what package; do
  [ -n "$parts" ] || continue
  if needed "$@" && ! there "$what"; then missing+=("$package"); fi
done <<<"$table"
[ ${#missing[@]} -gt 0 ] || exit 0

sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)
install=("${sudo[@]}" apt-get install -y --no-install-recommends "${missing[@]}")
if ! command -v apt-get >/dev/null || { [ ${#sudo[@]} -gt 0 ] && ! sudo -n true 2>/dev/null; }; then
  echo "$*: these programs are missing: ${missing[*]}. Install them first:" >&2
  echo "  ${install[*]}" >&2
  exit 1
fi
echo "installing ${missing[*]}" >&2
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]:${#sudo[@]}}" -qq >/dev/null
