#!/usr/bin/env bash
# Fails, with the difference, if a generated file is not what its sources make
# today: changed by hand, not regenerated, or left behind. It compares with a
# copy generated aside, so the tree may be dirty and stays as it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
tools/generate.sh "$fresh"

stale=0
while read -r file; do
  [ -e "$file" ] || { echo "$file: missing"; stale=1; continue; }
  [ -e "$fresh/$file" ] || { echo "$file: nothing generates it any more"; stale=1; continue; }
  diff -u --label "$file (in the tree)" --label "$file (generated)" "$file" "$fresh/$file" || stale=1
done < <({ tools/generate.sh --list; cd "$fresh" && find . -type f; } | LC_ALL=C sort -u)

if [ "$stale" -ne 0 ]; then
  echo "generated files are not current: run 'make generate' and commit the result" >&2
  exit 1
fi
