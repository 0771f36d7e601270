#!/usr/bin/env bash
# Builds the image of a Node: Debian 12 with kubelet, containerd, CNI plugins and a
# pause image. A VM of it needs no network but the API server's.
#
#   build.sh DIR BIN      puts node.qcow2, vmlinuz and initrd.img into DIR; does nothing
#                         if they are there already. BIN holds the kubelet.
#   build.sh --key BIN    prints the key of what would be built.
#
# The key is a hash of all that the image is made from: the kubelet, the module of
# containerd, every file of this folder with its mode, and the version of Go with its
# flags. DIR/.key holds it. Debian's packages are taken once for each list of packages:
# remove DIR to take newer ones. The mirror is that of this machine's own apt, where it
# knows the suite.
#
# Needs Debian's or Ubuntu's mmdebstrap, e2fsprogs and qemu-utils, and root, for the
# files in the image are root's.
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: $0 DIR|--key BIN" >&2; exit 2; }
dir=$1
if [ "$dir" != --key ]; then
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
fi
kubelet=$(cd "$2" && pwd)/kubelet
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
containerd=$here/../containerd

suite=bookworm
packages=$(grep -v '^#' "$here/packages" | paste -sd,)
# How big the VM's root is until its disk is made bigger. Blocks that nobody has
# written take no room.
size=4G

hash() { sha256sum | cut -d' ' -f1; }

base=$dir/base-$(echo "$suite $packages" | hash | cut -c1-16).tar
key=$({
  cat "$kubelet" "$containerd"/{go.mod,go.sum} "$here/../build.sh"
  # Kind, mode and name of all, where links lead, and what files hold.
  cd "$here"
  find . -printf '%y %m %p %l\n' | LC_ALL=C sort
  find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
  go version
  go env GOOS GOARCH GOAMD64 GOEXPERIMENT
} | hash)
if [ "$dir" = --key ]; then
  echo "$key"
  exit 0
fi

built() {
  [ "$(cat "$dir/.key" 2>/dev/null)" = "$key" ] && [ -f "$dir/node.qcow2" ] && [ -f "$dir/vmlinuz" ] && [ -f "$dir/initrd.img" ]
}
if built; then exit 0; fi

missing=()
for program in mmdebstrap mke2fs qemu-img; do
  command -v "$program" >/dev/null || missing+=("$program")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "$0: there is no ${missing[*]}: apt-get install mmdebstrap e2fsprogs qemu-utils" >&2
  exit 1
fi
sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)

# Half an image must never lie under the final name: build aside, then rename.
aside=$(mktemp -d "$dir/.aside.XXXXXX")
trap '"${sudo[@]}" rm -rf "$aside"' EXIT

containerd_version=$(cd "$containerd" && GOWORK=off go list -m -f '{{.Version}}' github.com/containerd/containerd/v2)
at=github.com/containerd/containerd/v2/cmd
PURPOSE="containerd $containerd_version from source: about two minutes on two cores, once" \
  BUILDTAGS=grpcnotrace,no_btrfs,no_devmapper,no_zfs CGO_ENABLED=0 \
  LDFLAGS="-s -w -X github.com/containerd/containerd/v2/version.Version=$containerd_version" \
  "$here/../build.sh" "$aside/bin" "$containerd" containerd=$at/containerd containerd-shim-runc-v2=$at/containerd-shim-runc-v2 ctr=$at/ctr

if [ ! -f "$base" ]; then
  echo "installing Debian 12 (only once)" >&2
  # Without a source mmdebstrap takes its own.
  mapfile -t sources < <(grep -lsw "$suite" /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources || true)
  "${sudo[@]}" mmdebstrap --quiet --variant=apt --include="$packages" "$suite" "$aside/base.tar" "${sources[@]}"
  "${sudo[@]}" mv "$aside/base.tar" "$base"
fi

echo "building the image of a Node" >&2
"${sudo[@]}" "$here/assemble.sh" "$base" "$aside" "$kubelet" "$size"
[ ${#sudo[@]} -eq 0 ] || "${sudo[@]}" chown "$(id -u):$(id -g)" "$aside"/{node.qcow2,vmlinuz,initrd.img} "$base"
for file in node.qcow2 vmlinuz initrd.img; do mv -f "$aside/$file" "$dir/$file"; done
echo "$key" >"$dir/.key"
