#!/usr/bin/env bash
# Builds executables of other projects from the modules below tools/, each once.
#
#   build.sh DIR MODULE NAME=PACKAGE...     puts them into DIR; MODULE is the folder of a go.mod
#   build.sh --key MODULE                   prints the key of what would be built
#
# LDFLAGS and BUILDTAGS are for Go's linker and compiler, PURPOSE says what is built and how long
# it takes. GOFLAGS and CGO_ENABLED count as usual: with the Makefile's flags, Go compiles a
# package once for all that use it.
#
# The key is a hash of all that an executable is made from: the files of MODULE, this script, the
# version of Go, its flags and the platform. The user's cache folder keeps what was built, for the
# two newest keys of each module, so that another clone builds nothing. DIR/.NAME.key holds the key
# of an executable, and its package.
set -euo pipefail

[ $# -ge 2 ] || { echo "usage: $0 DIR|--key MODULE NAME=PACKAGE..." >&2; exit 2; }
script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/build.sh
dir=$1 module=$(cd "$2" && pwd)
shift 2
if [ "$dir" != --key ]; then
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
fi
cd "$module"

# The module has its own versions; the workspace must not rule it.
export GOWORK=off

# hash reads stdin; coreutils and macOS name the program differently.
hash() {
  if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -d' ' -f1
}
key=$({
  cat go.mod go.sum "$script"
  find . -name '*.go' | LC_ALL=C sort | while read -r file; do echo "$file"; cat "$file"; done
  go version
  go env GOFLAGS CGO_ENABLED GOOS GOARCH GOAMD64 GOARM64 GOEXPERIMENT CC
  echo "${LDFLAGS-} ${BUILDTAGS-}"
} | hash)
if [ "$dir" = --key ]; then
  echo "$key"
  exit 0
fi

# current FOLDER NAME PACKAGE: whether the executable lies there, made from that with this key.
current() { [ -x "$1/$2" ] && [ "$(cat "$1/.$2.key" 2>/dev/null)" = "$key $3" ]; }

# place FROM TO: half an executable must never lie under its final name, where a build is
# interrupted or runs beside another one.
place() {
  ln -f "$1" "$2.$$" 2>/dev/null || cp -f "$1" "$2.$$"
  mv -f "$2.$$" "$2"
}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/millwright/$(basename "$module")
kept=$cache/$key
told=
for binary in "$@"; do
  name=${binary%%=*} package=${binary#*=}
  if current "$dir" "$name" "$package"; then continue; fi
  if ! current "$kept" "$name" "$package"; then
    if [ -z "$told" ] && [ -n "${PURPOSE-}" ]; then echo "building $PURPOSE" >&2; fi
    told=1
    echo "building $name (only once)" >&2
    mkdir -p "$kept"
    aside=$(mktemp -d "$kept/.aside.XXXXXX")
    trap 'rm -rf "$aside"' EXIT
    go build ${BUILDTAGS:+-tags "$BUILDTAGS"} -ldflags "${LDFLAGS--s -w}" -o "$aside/$name" "$package"
    mv -f "$aside/$name" "$kept/$name"
    echo "$key $package" >"$kept/.$name.key"
    rm -rf "$aside"
  fi
  place "$kept/$name" "$dir/$name"
  echo "$key $package" >"$dir/.$name.key"
done
[ -d "$kept" ] || exit 0

touch "$kept"
while read -r old; do rm -rf "${cache:?}/$old"; done < <(ls -1t "$cache" | tail -n +3)
