#!/usr/bin/env bash
# Builds parts of a real Kubernetes from the modules that this folder pins.
#
#   build.sh DIR [controlplane [MODULE]]   puts etcd, kube-apiserver, kube-controller-manager,
#                                          kube-scheduler, kubectl and kwok into DIR
#   build.sh DIR kubelet [MODULE]          puts the kubelet of real VMs into DIR
#   build.sh --key [...]                   prints the key of what would be built
#
# The module in the folder MODULE may pin another version of Kubernetes. It has no kwok: that plays
# pods for tests, of any version.
# ../build.sh says what the key covers, and where what was built is kept. One executable is built
# at a time: to link kube-apiserver alone takes 2 GiB, and Go keeps every core busy by itself.
set -euo pipefail

usage() {
  echo "usage: $0 DIR|--key [controlplane|kubelet [MODULE]]" >&2
  exit 2
}
if [ $# -lt 1 ] || [ $# -gt 3 ]; then usage; fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$1 what=${2:-controlplane} module=$(cd "${3:-$here}" && pwd)

kubernetes=$(sed -n 's,^\tk8s.io/kubernetes v\([^ ]*\).*,\1,p' "$module/go.mod")
case $what in
  controlplane)
    set -- etcd=go.etcd.io/etcd/server/v3
    [ "$module" != "$here" ] || set -- "$@" kwok=sigs.k8s.io/kwok/cmd/kwok
    for name in kube-apiserver kube-controller-manager kube-scheduler kubectl; do set -- "$@" "$name=k8s.io/kubernetes/cmd/$name"; done
    PURPOSE="a control plane of Kubernetes $kubernetes from source: about six minutes on two cores, once"
    ;;
  kubelet)
    set -- kubelet=k8s.io/kubernetes/cmd/kubelet
    PURPOSE="the kubelet of Kubernetes $kubernetes from source: about two minutes on two cores, once"
    ;;
  *) usage ;;
esac

# Kubernetes reports this version to clients, and kubectl compares it.
IFS=. read -r major minor _ <<<"$kubernetes"
version=k8s.io/component-base/version
LDFLAGS="-s -w -X $version.gitVersion=v$kubernetes -X $version.gitMajor=$major -X $version.gitMinor=$minor -X $version.gitTreeState=clean"

export PURPOSE LDFLAGS CGO_ENABLED=0 GOFLAGS=${GOFLAGS:--trimpath -buildvcs=false}
exec "$here/../build.sh" "$dir" "$module" "$@"
