#!/usr/bin/env bash
# Builds core and a driver of the release before this one, from its own sources:
# millwright-manager, millwright-driver-fake. Tests run them beside those of this
# tree, since core and drivers are upgraded one at a time.
#
#   build.sh DIR [FLAG...]    puts them into DIR, built by `go build FLAG...`; does
#                             nothing if they are there already.
#
# COMMIT holds that release, as a full hash. Move it at each release, to the commit
# that has been released; before the first one it is where the contract last stood
# still. "There already" means: made from the same commit, script, flags and Go
# version (DIR/.previous holds their hash).
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: $0 DIR [FLAG...]" >&2; exit 2; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# The workspace is that of the other tree.
export GOWORK= GOFLAGS= CGO_ENABLED=1

packages=(./cmd/millwright-manager ./providers/fake/cmd/millwright-driver-fake)
commit=$(cat tools/previous/COMMIT)

key=$({ cat tools/previous/build.sh; echo "$commit" "$@"; go version; go env GOOS GOARCH CC; } | git hash-object --stdin)

current() {
  [ "$(cat "$dir/.previous" 2>/dev/null)" = "$key" ] || return 1
  local p
  for p in "${packages[@]}"; do [ -x "$dir/${p##*/}" ] || return 1; done
}
if current; then exit 0; fi

has() { git cat-file -e "$commit^{commit}" 2>/dev/null; }
if ! has && ! { git fetch --quiet --depth=1 origin "$commit" && has; }; then
  echo "$0: this clone lacks commit $commit, the release before this one, and origin does not give it:" >&2
  echo "run git fetch --unshallow (or git fetch origin) and try again" >&2
  exit 1
fi

# A build that is interrupted must never leave half a binary under the final name:
# build aside, then rename.
aside=$(mktemp -d "$dir/.previous.XXXXXX")
trap 'rm -rf "$aside"' EXIT
mkdir "$aside/src" "$aside/bin"
git archive "$commit" | tar -x -C "$aside/src"
echo "building the release before this one, ${commit:0:12} (only once)" >&2
# The linker's flag names the commit in the executables: see `go version -m`.
(cd "$aside/src" && go build -buildvcs=false -ldflags "-X main.version=$commit" "$@" -o "$aside/bin/" "${packages[@]}")
mv -f "$aside"/bin/* "$dir/"
echo "$key" >"$dir/.previous"
