# shellcheck shell=bash
# The services' databases, made once; three at a time.

# main MODULE NAME ARGUMENT...: the console script NAME, which is MODULE's main; for
# those that Debian packages apart from the library, beside a systemd unit.
main() {
  local module=$1 name=$2
  shift 2
  "$python" -c "import sys; sys.argv[0] = '$name'; from $module import main; sys.exit(main())" "$@"
}

nova_manage() { main nova.cmd.manage nova-manage --config-file "$configs/nova.conf" "$@"; }
cinder_manage() { main cinder.cmd.manage cinder-manage --config-file "$configs/cinder.conf" "$@"; }
keystone_manage() { keystone-manage --config-file "$configs/keystone.conf" "$@"; }

keystone_schema() {
  local url=http://127.0.0.1:$keystone_port/v3
  keystone_manage db_sync
  keystone_manage fernet_setup --keystone-user root --keystone-group root
  keystone_manage credential_setup --keystone-user root --keystone-group root
  keystone_manage bootstrap --bootstrap-password "$password" --bootstrap-region-id RegionOne \
    --bootstrap-public-url "$url" --bootstrap-internal-url "$url" --bootstrap-admin-url "$url"
  placement-manage --config-file "$configs/placement.conf" db sync
  glance-manage --config-file "$configs/glance.conf" db_sync
}

nova_schema() {
  nova_manage api_db sync
  nova_manage cell_v2 map_cell0 --database_connection "$(database nova_cell0)"
  nova_manage db sync
  nova_manage cell_v2 create_cell --name=cell1
  cinder_manage db sync
}

neutron_schema() {
  neutron-db-manage --config-file "$configs/neutron.conf" upgrade heads
}

create_databases() {
  local name
  for name in keystone glance placement nova_api nova_cell0 nova_cell1 neutron cinder; do
    echo "DROP DATABASE IF EXISTS $name; CREATE DATABASE $name CHARACTER SET utf8mb3;"
  done | mariadb --no-defaults --socket="$sockets/mariadb.sock" -uroot
}

# create_schemas starts again from nothing where an earlier run was cut off.
create_schemas() {
  local part jobs=()
  if [ -e "$marks/schemas" ]; then
    [ "$(< "$marks/schemas")" = "$offset" ] || die "the databases in $state name other ports: remove it, or set OPENSTACK_PORT_OFFSET as before"
    return
  fi
  mkdir -p "$state"/keystone/{fernet-keys,credential-keys}
  create_databases
  for part in keystone nova neutron; do
    (set -e; "${part}_schema") > "$logs/schema-$part.log" 2>&1 &
    jobs+=($!)
  done
  for part in "${jobs[@]}"; do
    wait "$part" || die "a database could not be made: see $logs/schema-*.log"
  done
  echo "$offset" > "$marks/schemas"
  say "databases made"
}
