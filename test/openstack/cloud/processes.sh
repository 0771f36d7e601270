# shellcheck shell=bash
# Starting, watching and ending processes: there is no systemd here. Each is the
# leader of its own process group, whose number stands in $pids/NAME.

# alive NAME: does a process of its group run? One that nobody has reaped does not count.
alive() {
  local group
  [ -s "$pids/$1" ] || return 1
  group=$(< "$pids/$1")
  ps -e -o pgid=,stat= | awk -v group="$group" '$1 == group && $2 !~ /^[ZX]/ { found = 1 } END { exit !found }'
}

# spawn NAME COMMAND...: starts it unless it is alive; its output goes to $logs/NAME.log.
spawn() {
  local name=$1
  shift
  if alive "$name"; then return; fi
  (
    cd "$sockets" || exit
    exec setsid "$@" >> "$logs/$name.log" 2>&1 < /dev/null
  ) &
  echo $! > "$pids/$name"
  disown
}

# halt SIGNAL NAME: ends a process, by force if it takes longer than 20 s.
halt() {
  local group
  [ -s "$pids/$2" ] || return 0
  group=$(< "$pids/$2")
  kill "-$1" -- "-$group" 2> /dev/null || true
  # One that is stopped (ctl.sh pause) has to go on to end.
  kill -CONT -- "-$group" 2> /dev/null || true
  for _ in $(seq 100); do
    if ! alive "$2"; then break; fi
    sleep 0.2
  done
  kill -KILL -- "-$group" 2> /dev/null || true
  rm -f "$pids/$2"
}

# await SECONDS NAME COMMAND...: waits until the command succeeds.
await() {
  local end=$((SECONDS + $1)) name=$2
  shift 2
  until "$@" > /dev/null 2>&1; do
    if [ "$SECONDS" -gt "$end" ]; then die "$name is not there in time: see $logs"; fi
    sleep 0.3
  done
}

# answers URL: does somebody answer who is not in trouble?
answers() {
  local code
  code=$(curl -s -o /dev/null -m 5 -w '%{http_code}' "$1") || return 1
  [ "$code" -ge 200 ] && [ "$code" -lt 500 ]
}

# listens PORT: does somebody take connections?
listens() {
  (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null
}

# ours NAME PORT: fails where somebody else listens at the port of a process of ours.
ours() {
  if ! alive "$1" && listens "$2"; then die "port $2 is taken, not by $1 of $state: is another cloud up?"; fi
}
