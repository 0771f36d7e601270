#!/usr/bin/env bash
# Builds parts of a real Kubernetes from the modules that this folder pins.
#
#   build.sh DIR                    puts etcd, kube-apiserver, kube-controller-manager,
#                                   kube-scheduler, kubectl and kwok into DIR
#   build.sh DIR kubelet [MODULE]   puts the kubelet of real VMs into DIR; the module in
#                                   the folder MODULE may pin another version of Kubernetes
#   build.sh --key [kubelet [MODULE]]
#                                   prints the key of what would be built
#
# The key is a hash of all that the executables are made from: go.mod, go.sum, this script,
# the version of Go, its flags and the platform. DIR/.controlplane or DIR/.kubelet holds it.
# What has the same key already is not built again. The user's cache folder keeps what was
# built, for the two newest keys, so that a second clone builds nothing.
#
# One executable is built at a time: to link kube-apiserver alone takes 2 GiB, and Go keeps
# every core busy by itself.
set -euo pipefail

usage() {
  echo "usage: $0 DIR|--key [kubelet [MODULE]]" >&2
  exit 2
}
if [ $# -lt 1 ] || [ $# -gt 3 ]; then usage; fi
what=${2:-controlplane}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$1
if [ "$dir" != --key ]; then
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
fi

# NAME=PACKAGE, in the order in which they are built.
case $what in
  controlplane)
    binaries=(
      etcd=go.etcd.io/etcd/server/v3
      kube-apiserver=k8s.io/kubernetes/cmd/kube-apiserver
      kube-controller-manager=k8s.io/kubernetes/cmd/kube-controller-manager
      kube-scheduler=k8s.io/kubernetes/cmd/kube-scheduler
      kubectl=k8s.io/kubernetes/cmd/kubectl
      kwok=sigs.k8s.io/kwok/cmd/kwok
    )
    duration="about six minutes on two cores"
    ;;
  kubelet)
    binaries=(kubelet=k8s.io/kubernetes/cmd/kubelet)
    duration="about two minutes on two cores"
    ;;
  *) usage ;;
esac
cd "${3:-$here}"

# This module has its own versions of k8s.io/*; the workspace must not rule it. The flags are
# those of the Makefile: with the same flags, Go compiles a package once for all that use it.
export GOWORK=off CGO_ENABLED=0
export GOFLAGS=${GOFLAGS:--trimpath -buildvcs=false}

# hash reads stdin; coreutils and macOS name the program differently.
hash() {
  if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -d' ' -f1
}
key=$({
  cat go.mod go.sum "$here/build.sh"
  go version
  go env GOFLAGS GOOS GOARCH GOAMD64 GOARM64 GOEXPERIMENT
  echo "$what"
} | hash)
if [ "$dir" = --key ]; then
  echo "$key"
  exit 0
fi

# complete FOLDER: whether all executables lie in it, made from this key.
complete() {
  [ "$(cat "$1/.$what" 2>/dev/null)" = "$key" ] || return 1
  local b
  for b in "${binaries[@]}"; do [ -x "$1/${b%%=*}" ] || return 1; done
}
if complete "$dir"; then exit 0; fi

# Half an executable must never lie under its final name, where a build is interrupted or runs
# beside another one: build aside, then rename.
place() { # FROM TO
  ln -f "$1" "$2.$$" 2>/dev/null || cp -f "$1" "$2.$$"
  mv -f "$2.$$" "$2"
}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/millwright/$what
kept=$cache/$key
if ! complete "$kept"; then
  # Kubernetes reports this version to clients, and kubectl compares it.
  kubernetes=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  IFS=. read -r major minor _ <<<"${kubernetes#v}"
  version=k8s.io/component-base/version
  ldflags="-s -w -X $version.gitVersion=$kubernetes -X $version.gitMajor=$major -X $version.gitMinor=$minor -X $version.gitTreeState=clean"

  mkdir -p "$kept"
  aside=$(mktemp -d "$kept/.aside.XXXXXX")
  trap 'rm -rf "$aside"' EXIT
  echo "building ${#binaries[@]} executables of Kubernetes ${kubernetes#v} from source: $duration, once" >&2
  for b in "${binaries[@]}"; do
    [ ! -x "$kept/${b%%=*}" ] || continue
    echo "building ${b%%=*}" >&2
    go build -ldflags "$ldflags" -o "$aside/${b%%=*}" "${b#*=}"
    mv -f "$aside/${b%%=*}" "$kept/${b%%=*}"
  done
  echo "$key" >"$kept/.$what"
fi

for b in "${binaries[@]}"; do place "$kept/${b%%=*}" "$dir/${b%%=*}"; done
echo "$key" >"$dir/.$what"

# The two newest keys stay.
touch "$kept"
while read -r old; do rm -rf "${cache:?}/$old"; done < <(ls -1t "$cache" | tail -n +3)
