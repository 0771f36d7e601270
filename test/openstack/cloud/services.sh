# shellcheck shell=bash
# OpenStack's own services, and what there is in the cloud from the beginning.

# wsgi NAME THREADS FILE: a service under uWSGI. Its HTTP server keeps no connection
# open and does not say so; the header does.
wsgi() {
  local name=$1 threads=$2 file=$3 port=${1}_port
  spawn "$name" env OS_KEYSTONE_CONFIG_DIR="$configs" OS_KEYSTONE_CONFIG_FILES="$configs/keystone.conf" OS_PLACEMENT_CONFIG_DIR="$configs" \
    uwsgi --plugin python3 --master --need-app --die-on-term --enable-threads --lazy-apps --buffer-size 65535 --disable-logging \
    --add-header "Connection: close" --http-socket "127.0.0.1:${!port}" --processes 1 --threads "$threads" --wsgi-file "$file"
}

# service NAME MODULE ARGUMENT...: one whose main is in a module.
service() {
  local name=$1 module=$2
  shift 2
  spawn "$name" env PYTHONPATH="$source_dir/python" "$python" -c "import sys; sys.argv[0] = '$name'; from $module import main; sys.exit(main())" "$@"
}

start_apis() {
  wsgi keystone 6 /usr/bin/keystone-wsgi-public
  wsgi placement 4 /usr/bin/placement-api
  service glance-api glance.cmd.api --config-file "$configs/glance.conf"
  local neutron=(--config-file "$configs/neutron.conf")
  if [ "$compute" = libvirt ]; then neutron+=(--config-file "$configs/neutron-linuxbridge.conf"); fi
  spawn neutron-server env PYTHONPATH="$source_dir/python" neutron-server "${neutron[@]}"
  service nova-api nova.cmd.api --config-file "$configs/nova.conf"
  service cinder-api cinder.cmd.api --config-file "$configs/cinder.conf"
}

# These log in while they start, and give up where they cannot: their users come first.
start_workers() {
  local host
  service nova-conductor nova.cmd.conductor --config-file "$configs/nova.conf"
  service nova-scheduler nova.cmd.scheduler --config-file "$configs/nova.conf"
  for host in "${hosts[@]}"; do
    if [ "$compute" = libvirt ]; then
      start_compute "$host"
      continue
    fi
    spawn "nova-compute-$host" env OPENSTACK_VIFS="$sockets/vif" OPENSTACK_FAULTS="$state/faults.json" \
      "$python" "$source_dir/python/nova_compute.py" --config-file "$configs/nova.conf" --config-file "$configs/nova-$host.conf"
  done
  service cinder-scheduler cinder.cmd.scheduler --config-file "$configs/cinder.conf"
  service cinder-volume cinder.cmd.volume --config-file "$configs/cinder.conf"
}

start_proxy() {
  local port relays=()
  if [ -z "$proxy" ]; then return; fi
  for port in "${public_ports[@]}"; do relays+=("127.0.0.1:$((port + 10000))=127.0.0.1:$port"); done
  spawn faultproxy "$proxy" -control "127.0.0.1:$proxy_port" "${relays[@]}"
  await 20 faultproxy listens "$proxy_port"
}

# seed PART: makes what there is in the cloud from the beginning, through its own APIs.
seed() {
  local real=()
  if [ "$compute" = libvirt ]; then real=(--physical-network "$physical_network" --node-image "${OPENSTACK_NODE_IMAGE:?}"); fi
  "$python" "$source_dir/python/seed.py" "$1" --world "$source_dir/world.json" --password "$password" --public-offset "$public_offset" \
    --hosts "${hosts[@]}" --ports "${public_ports[@]}" "${real[@]}" >> "$logs/seed.log" 2>&1 || die "the cloud's $1 could not be made: see $logs/seed.log"
}

# seed_once PART: does so if it has not been done in this way before. Another image of a
# Node is another way.
seed_once() {
  local way inputs=("$source_dir/world.json" "$source_dir/python/seed.py")
  if [ "$compute" = libvirt ]; then inputs+=("${OPENSTACK_NODE_IMAGE:?}/.key"); fi
  way=$(cat "${inputs[@]}" <(echo "$public_offset $compute") | sha256sum)
  if [ -e "$marks/$1" ] && [ "$(< "$marks/$1")" = "$way" ]; then return; fi
  seed "$1"
  echo "$way" > "$marks/$1"
}

start_services() {
  local service port
  start_apis
  start_proxy
  await 120 keystone answers "http://127.0.0.1:$keystone_port/v3"
  seed_once identity
  say "Keystone is there"
  start_workers
  for service in glance placement nova neutron cinder; do
    port=${service}_port
    await 180 "$service" answers "http://127.0.0.1:${!port}/"
  done
  say "Glance, Placement, Nova, Neutron and Cinder are there"
  seed_once resources
  seed hosts
  say "the cloud has what world.json names"
}

# write_access tells users how to log in.
write_access() {
  local url=http://127.0.0.1:$((keystone_port + public_offset))/v3 user
  {
    echo "clouds:"
    for user in demo alt admin; do
      printf '  %s:\n    region_name: RegionOne\n    auth:\n' "$user"
      printf '      auth_url: %s\n      username: %s\n      password: %s\n      project_name: %s\n' "$url" "$user" "$password" "$user"
      printf '      user_domain_name: Default\n      project_domain_name: Default\n'
    done
  } > "$state/clouds.yaml"
  {
    printf 'export OS_CLIENT_CONFIG_FILE=%q OS_CLOUD=demo\n' "$state/clouds.yaml"
    printf 'export MILLWRIGHT_OPENSTACK=%q\n' "$state/environment.json"
  } > "$state/openrc"
  cat > "$state/environment.json" <<- X
	{
	  "release": "zed",
	  "identityEndpoint": "$url",
	  "region": "RegionOne",
	  "administrator": "admin",
	  "member": "demo",
	  "password": "$password",
	  "faultProxy": "${proxy:+http://127.0.0.1:$proxy_port}",
	  "faults": "$state/faults.json",
	  "scripts": "$source_dir",
	  "environment": ["OPENSTACK_DIR=$state", "OPENSTACK_PROXY=$proxy", "OPENSTACK_PORT_OFFSET=$offset",
	    "OPENSTACK_COMPUTE=$compute", "OPENSTACK_NODE_IMAGE=${OPENSTACK_NODE_IMAGE:-}"]
	}
	X
  chmod 600 "$state/clouds.yaml" "$state/openrc" "$state/environment.json"
}
