#!/usr/bin/env bash
# Makes an initrd that mounts a virtio disk with ext4, and finds a CD with the VM's
# configuration. Debian's own looks for whatever a machine may have. This costs a VM
# without KVM 10 seconds of its boot.
#
# The CD has to be there before systemd starts. cloud-init's generator runs first of all,
# looks once, and disables cloud-init where it finds no configuration. A module that udev
# loads comes 14 seconds later without KVM. modprobe returns when a controller's devices
# are known, so the order of the modules is all that matters.
#
#   initrd.sh ROOT FILE    ROOT is Debian unpacked, with busybox-static and a kernel's modules
set -euo pipefail
root=$1 file=$2
work=$(mktemp -d "$(dirname "$file")/initrd.XXXXXX")
trap 'rm -rf "$work"' EXIT

kernel=$(ls "$root/lib/modules")
from=$root/lib/modules/$kernel
mkdir -p "$work"/{bin,dev,proc,sys,root,"lib/modules/$kernel"}
cp "$root/bin/busybox" "$work/bin/"
# crc32c is what ext4 asks the kernel for by that name alone.
disk=(virtio_pci virtio_blk crc32c_generic ext4)
# Nova's config drive is a CD on IDE, with other machine types on SATA or virtio SCSI.
cd=(ata_piix ahci virtio_scsi sr_mod)
for module in "${disk[@]}" "${cd[@]}"; do
  # What is not there is built in.
  line=$(grep "/$module\.ko:" "$from/modules.dep" || true)
  [ -n "$line" ] || continue
  echo "$line" >>"$work/lib/modules/$kernel/modules.dep"
  for path in ${line/:/}; do
    install -D -m 0644 "$from/$path" "$work/lib/modules/$kernel/$path"
    grep "^$path:" "$from/modules.dep" >>"$work/lib/modules/$kernel/modules.dep"
  done
done
cat >"$work/init" <<EOF
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for module in ${disk[*]}; do modprobe "\$module" 2>/dev/null; done
disk=/dev/vda cd=1
for word in \$(cat /proc/cmdline); do
  case \$word in
    root=*) disk=\${word#root=} ;;
    # Its configuration is on a virtio disk.
    ds=nocloud*) cd= ;;
  esac
done
[ -z "\$cd" ] || for module in ${cd[*]}; do modprobe "\$module" 2>/dev/null; done
until [ -b "\$disk" ]; do usleep 50000; done
mount -t ext4 -o rw "\$disk" /root
umount /proc
mount --move /dev /root/dev
exec switch_root /root /sbin/init
EOF
chmod 0755 "$work/init"
(cd "$work" && find . | LC_ALL=C sort | ./bin/busybox cpio -o -H newc 2>/dev/null) | gzip -1 >"$file"
