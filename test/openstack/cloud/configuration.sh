# shellcheck shell=bash
# Writes the services' configuration files from templates/: @NAME@ stands for the
# shell variable NAME.

# database NAME: the URL of a database. PyMySQL needs the character set.
database() {
  echo "mysql+pymysql://root@localhost/$1?unix_socket=$sockets/mariadb.sock&charset=utf8"
}

# render TEMPLATE FILE: fails where something is left that nobody has given.
render() {
  local text name
  text=$(< "$source_dir/templates/$1")
  while [[ $text =~ @([a-z_0-9]+)@ ]]; do
    name=${BASH_REMATCH[1]}
    [ -n "${!name+given}" ] || die "templates/$1: nothing is called $name"
    text=${text//"@$name@"/"${!name}"}
  done
  printf '%s\n' "$text" > "$configs/$2"
}

# write_service SERVICE: its configuration, with how it logs in to the others.
write_service() {
  # shellcheck disable=SC2034 # the templates read them
  local service=$1 database login
  database=$(database "${2:-$1}")
  login=$(< "$source_dir/templates/login.conf")
  render "$1.conf" "$1.conf"
}

write_configuration() {
  # shellcheck disable=SC2034 # the templates read them
  local queue=rabbit://guest:guest@127.0.0.1:$rabbitmq_port/ token_expiration=${OPENSTACK_TOKEN_EXPIRATION:-3600} api_database host
  # shellcheck disable=SC2034
  api_database=$(database nova_api)
  write_service keystone
  write_service glance
  write_service placement
  write_service neutron
  write_service cinder
  write_service nova nova_cell1
  for host in "${hosts[@]}"; do render nova-compute.conf "nova-$host.conf"; done
  render rabbitmq.conf rabbitmq.conf
  if [ "$compute" = libvirt ]; then write_libvirt_configuration; fi
}
