#!/usr/bin/env bash
# Fails where a function of the workspace is reached from no command and no test.
#
#   check.sh DEADCODE    DEADCODE is the program that this folder's module pins
#
# The file `allowed` lists what is for users outside of this repository, with a reason.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: $0 DEADCODE" >&2; exit 2; }
deadcode=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."

mapfile -t patterns < <(sed -n 's,^[[:space:]]*\(\./.*\),\1/...,p' go.work)
found=$("$deadcode" -test -tags grpcnotrace -f '{{range .Funcs}}{{printf "%s.%s\n" $.Path .Name}}{{end}}' "${patterns[@]}" | sed '/^$/d' | sort)
unlisted=$(comm -23 <(echo "$found") <(sed -n 's,^\([^#[:space:]]*\).*,\1,p' "$here/allowed" | sort) | sed '/^$/d')
[ -n "$unlisted" ] || exit 0
echo "nothing reaches these functions: remove them, or say in tools/deadcode/allowed why they stay" >&2
echo "$unlisted" >&2
exit 1
