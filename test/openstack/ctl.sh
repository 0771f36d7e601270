#!/usr/bin/env bash
# Handles single processes of the cloud in OPENSTACK_DIR.
#
#   ctl.sh status              all of them
#   ctl.sh stop NAME           ends one; kill: at once. up.sh starts it again
#   ctl.sh pause|resume NAME   stops it where it stands, lets it go on
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly source_dir
# shellcheck source=cloud/settings.sh
source "$source_dir/cloud/settings.sh"
# shellcheck source=cloud/processes.sh
source "$source_dir/cloud/processes.sh"

status() {
  local file name
  for file in "$pids"/*; do
    [ -e "$file" ] || die "nothing was started in $state"
    name=${file##*/}
    if alive "$name"; then echo "$name $(< "$file") up"; else echo "$name $(< "$file") down"; fi
  done
}

# signal SIGNAL NAME: sends it to the whole group.
signal() {
  alive "$2" || die "$2 does not run"
  kill "-$1" -- "-$(< "$pids/$2")"
}

case ${1:-}/$# in
  status/1) status ;;
  stop/2) alive "$2" || die "$2 does not run"; halt TERM "$2" ;;
  kill/2) alive "$2" || die "$2 does not run"; halt KILL "$2" ;;
  pause/2) signal STOP "$2" ;;
  resume/2) signal CONT "$2" ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
