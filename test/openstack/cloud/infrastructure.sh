# shellcheck shell=bash
# What the services stand on: RabbitMQ, MariaDB, OVN's databases, and a stand-in for
# ovn-controller, since there is no Open vSwitch here.

start_rabbitmq() {
  local rabbit=$state/rabbitmq
  mkdir -p "$rabbit"
  export ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=$epmd_port
  # RabbitMQ would start it as a daemon, which nobody ends.
  spawn epmd epmd -address 127.0.0.1 -port "$epmd_port" -relaxed_command_check
  await 20 epmd listens "$epmd_port"
  spawn rabbitmq env HOME="$rabbit" RABBITMQ_NODENAME="openstack$offset@localhost" \
    RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT="$rabbitmq_port" RABBITMQ_DIST_PORT="$erlang_port" \
    RABBITMQ_MNESIA_BASE="$rabbit/mnesia" RABBITMQ_LOG_BASE="$rabbit/log" RABBITMQ_PID_FILE="$rabbit/pid" \
    RABBITMQ_CONFIG_FILE="$configs/rabbitmq.conf" RABBITMQ_ENABLED_PLUGINS_FILE="$rabbit/enabled_plugins" RABBITMQ_CONF_ENV_FILE=/dev/null \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none" \
    /usr/lib/rabbitmq/bin/rabbitmq-server
}

# MariaDB need not survive a power cut: it does not wait for the disk.
start_mariadb() {
  local data=$state/mariadb
  if [ ! -d "$data/mysql" ]; then
    mariadb-install-db --no-defaults --user=root --datadir="$data" --auth-root-authentication-method=normal --skip-test-db \
      > "$logs/mariadb-install.log" 2>&1 || die "mariadb-install-db failed: see $logs/mariadb-install.log"
  fi
  spawn mariadb mariadbd --no-defaults --user=root --datadir="$data" --socket="$sockets/mariadb.sock" --pid-file="$sockets/mariadb.pid" \
    --bind-address=127.0.0.1 --port="$mariadb_port" --character-set-server=utf8mb3 --max-connections=800 --skip-name-resolve --skip-log-bin \
    --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --innodb-flush-method=nosync --innodb-buffer-pool-size=256M \
    --innodb-file-per-table=0 --performance-schema=off
}

start_ovn() {
  local part
  for part in nb sb; do
    [ -e "$state/ovn/$part.db" ] || ovsdb-tool create "$state/ovn/$part.db" "/usr/share/ovn/ovn-$part.ovsschema"
    spawn "ovsdb-$part" ovsdb-server --no-chdir --remote="punix:$sockets/ovn-$part.sock" --unixctl="$sockets/ovn-$part.ctl" -vconsole:warn "$state/ovn/$part.db"
    await 20 "ovsdb-$part" test -S "$sockets/ovn-$part.sock"
  done
  ovn-nbctl --db="unix:$sockets/ovn-nb.sock" --no-wait init
  ovn-sbctl --db="unix:$sockets/ovn-sb.sock" init
  spawn ovn-northd ovn-northd --ovnnb-db="unix:$sockets/ovn-nb.sock" --ovnsb-db="unix:$sockets/ovn-sb.sock" --unixctl="$sockets/ovn-northd.ctl" -vconsole:warn
  spawn ovn-chassis "$python" "$source_dir/python/ovn_chassis.py" "unix:$sockets/ovn-sb.sock" "$sockets/vif" "${hosts[@]}"
}

start_infrastructure() {
  mkdir -p "$state/ovn" "$sockets/vif"
  start_rabbitmq
  start_mariadb
  if [ "$compute" = libvirt ]; then start_libvirt; else start_ovn; fi
  await 60 mariadb mariadb-admin --no-defaults --socket="$sockets/mariadb.sock" -uroot ping
  await 90 rabbitmq listens "$rabbitmq_port"
  say "RabbitMQ, MariaDB and OVN or libvirt are there"
}
