#!/usr/bin/env bash
# Builds a real Kubernetes control plane from the modules that this folder pins:
# etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok,
# and the kubelet of real VMs.
#
#   build.sh DIR           puts them into DIR; does nothing if they are there already.
#   build.sh DIR MODULE    puts the kubelet into DIR that the module in the folder
#                          MODULE pins: another version of Kubernetes.
#
# "There already" means: made from the same go.mod, go.sum, flags and Go version
# (DIR/.controlplane holds their hash). The first build takes about five minutes
# on two cores; one binary is built at a time, because linking kube-apiserver
# alone takes 2 GiB and Go keeps every core busy by itself.
set -euo pipefail

case $# in
  1 | 2) ;;
  *) echo "usage: $0 DIR [MODULE]" >&2; exit 2 ;;
esac
mkdir -p "$1"
dir=$(cd "$1" && pwd)
script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/build.sh
cd "${2:-${script%/*}}"

# This module has its own versions of k8s.io/*; the workspace must not rule it.
export GOWORK=off GOFLAGS= CGO_ENABLED=0

# NAME=PACKAGE, in the order in which they are built.
binaries=(
  etcd=go.etcd.io/etcd/server/v3
  kube-apiserver=k8s.io/kubernetes/cmd/kube-apiserver
  kube-controller-manager=k8s.io/kubernetes/cmd/kube-controller-manager
  kube-scheduler=k8s.io/kubernetes/cmd/kube-scheduler
  kubectl=k8s.io/kubernetes/cmd/kubectl
  kubelet=k8s.io/kubernetes/cmd/kubelet
  kwok=sigs.k8s.io/kwok/cmd/kwok
)
[ $# -eq 1 ] || binaries=(kubelet=k8s.io/kubernetes/cmd/kubelet)

# hash reads stdin; coreutils and macOS name the program differently.
hash() {
  if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -d' ' -f1
}

# This script stands for the flags.
key=$(cat go.mod go.sum "$script" <(go version) | hash)

current() {
  [ "$(cat "$dir/.controlplane" 2>/dev/null)" = "$key" ] || return 1
  local b
  for b in "${binaries[@]}"; do [ -x "$dir/${b%%=*}" ] || return 1; done
}
if current; then exit 0; fi

# Kubernetes reports this version to clients, and kubectl compares it.
kubernetes=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${kubernetes#v}"
version=k8s.io/component-base/version
ldflags="-s -w -X $version.gitVersion=$kubernetes -X $version.gitMajor=$major -X $version.gitMinor=$minor -X $version.gitTreeState=clean"

# A build that is interrupted, or runs beside another one, must never leave half
# a binary under the final name: build aside, then rename.
aside=$(mktemp -d "$dir/.controlplane.XXXXXX")
trap 'rm -rf "$aside"' EXIT
for b in "${binaries[@]}"; do
  echo "building ${b%%=*} (Kubernetes ${kubernetes#v}; only once)" >&2
  go build -trimpath -buildvcs=false -ldflags "$ldflags" -o "$aside/${b%%=*}" "${b#*=}"
  mv -f "$aside/${b%%=*}" "$dir/${b%%=*}"
done
echo "$key" >"$dir/.controlplane"
