#!/usr/bin/env bash
# The part of build.sh that needs root: unpacks Debian, adds what Debian lacks, and
# makes a disk of it.
#
#   assemble.sh BASE ASIDE KUBELET SIZE    ASIDE/bin holds containerd's executables;
#                                          node.qcow2, vmlinuz and initrd.img go to ASIDE.
set -euo pipefail
base=$1 aside=$2 kubelet=$3 size=$4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$aside/root

mkdir "$root"
tar --numeric-owner --xattrs --xattrs-include='*' -xf "$base" -C "$root"
cp "$root"/boot/vmlinuz-* "$aside/vmlinuz"
rm "$root"/boot/*
"$here/initrd.sh" "$root" "$aside/initrd.img"

# Where user data looks for them: then it downloads nothing.
install -D -m 0755 "$kubelet" "$root/opt/bin/kubelet"
install -m 0755 "$aside"/bin/* "$root/usr/local/bin/"
mkdir -p "$root/opt/cni"
ln -s /usr/lib/cni "$root/opt/cni/bin"

# It only has cloud-init warn of user data, and is read four times in each boot.
rm -r "$root"/usr/lib/python3/dist-packages/jsonschema

cp -r --no-preserve=ownership "$here/root/." "$root/"
# Each VM is a machine of its own.
: >"$root/etc/machine-id"
rm -f "$root/etc/hostname"
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
  e2scrub_all.timer e2scrub_reap.service fstrim.timer getty@tty1.service systemd-binfmt.service \
  systemd-update-utmp.service systemd-update-utmp-runlevel.service cloud-init-hotplugd.socket cloud-config.service; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
enable() { mkdir -p "$root/etc/systemd/system/$1.wants" && ln -sf "$2" "$root/etc/systemd/system/$1.wants/"; }
enable containerd.service /etc/systemd/system/node-images.service

# image NAME... -- COMMAND... writes an image of busybox under these names, as an
# archive that `ctr images import` takes.
image() {
  local names=() layer work
  while [ "$1" != -- ]; do names+=("\"$1\""); shift; done
  shift
  work=$(mktemp -d "$aside/image.XXXXXX")
  mkdir -p "$work/fs/bin"
  cp "$root/bin/busybox" "$work/fs/bin/"
  local applet
  for applet in $("$work/fs/bin/busybox" --list); do [ "$applet" = busybox ] || ln -s busybox "$work/fs/bin/$applet"; done
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/layer.tar" -C "$work/fs" .
  rm -r "$work/fs"
  layer=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
  local command
  command=$(printf ',"%s"' "$@")
  printf '{"architecture":"amd64","os":"linux","config":{"Env":["PATH=/bin"],"Cmd":[%s]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "${command#,}" "$layer" >"$work/config.json"
  printf '[{"Config":"config.json","RepoTags":[%s],"Layers":["layer.tar"]}]' "$(IFS=,; echo "${names[*]}")" >"$work/manifest.json"
  mkdir -p "$root/usr/local/share/node-images"
  tar -cf "$root/usr/local/share/node-images/$(basename "$work").tar" -C "$work" manifest.json config.json layer.tar
}
# A runtime kills its sandboxes, so nothing has to wait for a signal. The names are
# the defaults of Kubernetes 1.35 to 1.37.
image registry.k8s.io/pause:3.10.1 registry.k8s.io/pause:3.10.2 -- /bin/sleep infinity
image localhost/busybox:1 -- /bin/sh

mke2fs -q -t ext4 -d "$root" -L root "$aside/node.raw" "$size"
qemu-img convert -O qcow2 "$aside/node.raw" "$aside/node.qcow2"
rm "$aside/node.raw"
