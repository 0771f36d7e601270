"""seed.py identity|resources|hosts: makes what there is in the cloud from the beginning, through its own APIs. What is there
already stays. world.json says what, in the form that the simulator reads; the ids in it are the simulator's alone, since
OpenStack gives its own."""
import argparse
import json
import os
import sys
import time

import requests

SERVICES = (  # name, type, path below the endpoint; in the order of --ports
    ('keystone', 'identity', '/v3'), ('glance', 'image', ''), ('placement', 'placement', ''), ('nova', 'compute', '/v2.1'),
    ('neutron', 'network', ''), ('cinder', 'volumev3', '/v3'),
)
WITH_USERS = ('glance', 'placement', 'nova', 'neutron', 'cinder')
NODE = 'Ubuntu Noble 24.04 (2024-08-01)'
MEMBER, ADMIN, SERVICE = 'member', 'admin', 'service'


class Cloud:
    """The cloud as one of its users sees it."""

    def __init__(self, options, user):
        self.base = {kind: 'http://127.0.0.1:%d%s' % (port, path) for (_, kind, path), port in zip(SERVICES, options.ports)}
        self.base['network'] += '/v2.0'
        self.base['image'] += '/v2'
        self.http = requests.Session()
        self.http.trust_env = False
        self.http.headers['Connection'] = 'close'
        domain = {'id': 'default'}
        answer = self.http.post(self.base['identity'] + '/auth/tokens', json={'auth': {
            'identity': {'methods': ['password'], 'password': {'user': {'name': user, 'domain': domain, 'password': options.password}}},
            'scope': {'project': {'name': user, 'domain': domain}}}})
        answer.raise_for_status()
        self.http.headers['X-Auth-Token'] = answer.headers['X-Subject-Token']
        self.project = answer.json()['token']['project']['id']
        self.base['volumev3'] += '/' + self.project

    def call(self, method, service, path, body=None, headers=None, **options):
        if service == 'compute':  # Cinder refuses the header when it names another service
            headers = {'OpenStack-API-Version': 'compute 2.67'}
        answer = self.http.request(method, self.base[service] + path, json=body, headers=headers, **options)
        if answer.status_code >= 300:
            sys.exit('%s %s: %d %s' % (method, answer.url, answer.status_code, answer.text[:500]))
        return answer.json() if answer.content and 'json' in answer.headers.get('Content-Type', '') else {}

    def find(self, service, path, collection, name):
        """The first of that name, or None. Not every collection can be asked for a name."""
        return next((thing for thing in self.call('GET', service, path)[collection] if thing['name'] == name), None)

    def ensure(self, service, path, one, name, **rest):
        """The thing of that name, made if there is none; one is what the body calls it."""
        return self.find(service, path, one + 's', name) or self.call('POST', service, path.partition('?')[0], {one: dict(name=name, **rest)})[one]


def identity(admin, world, options):
    roles = {name: admin.ensure('identity', '/roles', 'role', name) for name in (ADMIN, MEMBER, SERVICE)}
    grants = [('service', user, role) for user in WITH_USERS for role in (ADMIN, SERVICE)]
    grants += [(project['name'], project['name'], ADMIN if project.get('admin') else MEMBER) for project in world['projects']]
    for project, user, role in grants:
        project = admin.ensure('identity', '/projects', 'project', project, domain_id='default')
        user = admin.ensure('identity', '/users', 'user', user, domain_id='default', password=options.password)
        admin.call('PUT', 'identity', '/projects/%s/users/%s/roles/%s' % (project['id'], user['id'], roles[role]['id']))
    known = {region['id'] for region in admin.call('GET', 'identity', '/regions')['regions']}
    for region in world['regions']:
        if region not in known:
            admin.call('POST', 'identity', '/regions', {'region': {'id': region}})
    for (name, kind, path), port in zip(SERVICES, options.ports):
        path += '/$(project_id)s' if kind == 'volumev3' else ''
        endpoints(admin, admin.ensure('identity', '/services', 'service', name, type=kind), world['regions'], {
            interface: 'http://127.0.0.1:%d%s' % (port + (options.public_offset if interface == 'public' else 0), path)
            for interface in ('public', 'internal', 'admin')})


def endpoints(admin, service, regions, urls):
    known = {(endpoint['region'], endpoint['interface']): endpoint
             for endpoint in admin.call('GET', 'identity', '/endpoints?service_id=' + service['id'])['endpoints']}
    for region in regions:
        for interface, url in urls.items():
            endpoint = known.get((region, interface))
            body = {'endpoint': {'service_id': service['id'], 'interface': interface, 'url': url, 'region_id': region}}
            if endpoint is None:
                admin.call('POST', 'identity', '/endpoints', body)
            elif endpoint['url'] != url:
                admin.call('PATCH', 'identity', '/endpoints/' + endpoint['id'], {'endpoint': {'url': url}})


def resources(admin, world, options):
    projects = {project['name']: Cloud(options, project['name']) for project in world['projects']}
    for flavor in world['flavors']:
        admin.ensure('compute', '/flavors?is_public=None', 'flavor', **flavor)
    for image in world['images']:
        if options.node_image and image['name'] == NODE:
            make_node_image(admin, image, options.node_image)
        else:
            make_image(admin, image)
    for kind in world['volumeTypes']:
        admin.ensure('volumev3', '/types', 'volume_type', kind)
    quotas(admin, projects)
    networks(projects, world, options.physical_network)
    for group in world['securityGroups']:
        projects[group['project']].ensure('network', '/security-groups', 'security_group', group['name'])
    for group in world['serverGroups']:
        projects[group['project']].ensure('compute', '/os-server-groups', 'server_group', group['name'], policy=group['policy'])


def make_image(admin, image):
    upload(admin, image, os.urandom(1 << 16), disk_format='raw', container_format='bare')


def upload(admin, image, data, **properties):
    """The image's id; data are bytes or an open file. An image of this name that was built from something else is replaced."""
    known = admin.call('GET', 'image', '/images', params={'name': image['name'], 'status': 'active'})['images']
    for old in known:
        if old.get('built_from') == properties.get('built_from'):
            return old['id']
    for old in known:
        admin.call('DELETE', 'image', '/images/' + old['id'])
    made = admin.call('POST', 'image', '/images', {
        'name': image['name'], 'visibility': 'public', 'min_disk': image.get('minDisk', 0), 'min_ram': image.get('minRAM', 0),
        **image.get('properties', {}), **properties})
    admin.call('PUT', 'image', '/images/%s/file' % made['id'], data=data, headers={'Content-Type': 'application/octet-stream'})
    return made['id']


def make_node_image(admin, image, folder):
    """An image that boots and becomes a Node, from the folder of tools/nodeimage. A cloud that is there already gets it anew
    when the folder's key has changed: kernel, initrd and disk belong together."""
    with open(os.path.join(folder, '.key'), encoding='ascii') as key:
        built_from = key.read().strip()
    parts = {}
    for part, file, form in (('kernel_id', 'vmlinuz', 'aki'), ('ramdisk_id', 'initrd.img', 'ari')):
        with open(os.path.join(folder, file), 'rb') as data:
            parts[part] = upload(admin, {'name': file}, data, disk_format=form, container_format=form, built_from=built_from)
    with open(os.path.join(folder, 'node.qcow2'), 'rb') as data:
        upload(admin, image, data, disk_format='qcow2', container_format='bare', built_from=built_from,
               os_command_line='root=/dev/vda rw console=tty0 console=ttyS0', **parts)


def quotas(admin, projects):
    """Nobody is limited before a test says so, as in the simulator."""
    for project in projects.values():
        admin.call('PUT', 'compute', '/os-quota-sets/' + project.project, {'quota_set': {
            name: -1 for name in ('instances', 'cores', 'ram', 'server_groups', 'server_group_members')}})
        admin.call('PUT', 'network', '/quotas/' + project.project, {'quota': {
            name: -1 for name in ('network', 'subnet', 'router', 'port', 'floatingip', 'security_group', 'trunk')}})
        admin.call('PUT', 'volumev3', '/os-quota-sets/' + project.project, {'quota_set': {name: -1 for name in ('volumes', 'gigabytes')}})


def networks(projects, world, physical):
    """Each external network is the physical network externalN. Each project has a router to each of them, which all the
    project's subnets are on: the first as their gateway, the others at an address of their own. The network that physical
    names, if any, is physnet1, where nobody answers to DHCP."""
    external = [network for network in world['networks'] if network.get('external')]
    for number, network in enumerate(external, 1):
        make_network(projects, network, {
            'router:external': True, 'provider:network_type': 'flat', 'provider:physical_network': 'external%d' % number}, {'enable_dhcp': False})
    for network in world['networks']:
        if network.get('external'):
            continue
        project = projects[network['project']]
        if network['name'] == physical:
            made = make_network(projects, network, {'provider:network_type': 'flat', 'provider:physical_network': 'physnet1'}, {'enable_dhcp': False})
        else:
            made = make_network(projects, network, {'shared': True} if network.get('shared') else {}, {})
        for outside in external:
            for subnet in made:
                join(project, outside, subnet)


def make_network(projects, network, properties, of_subnets):
    """The network's subnets."""
    owner = {'project_id': projects[network['project']].project}
    # Only administrators may choose a physical network.
    project = projects['admin' if 'provider:physical_network' in properties else network['project']]
    made = project.ensure('network', '/networks', 'network', network['name'], **owner, **properties)
    return [project.ensure('network', '/subnets', 'subnet', subnet['name'], network_id=made['id'], ip_version=4, cidr=subnet['cidr'], **owner, **of_subnets)
            for subnet in network['subnets']]


def join(project, outside, subnet):
    """Connects the subnet with the project's router to an external network."""
    network = project.call('GET', 'network', '/networks', params={'name': outside['name']})['networks'][0]
    router = project.ensure('network', '/routers', 'router', '%s-%s' % (project.project, outside['name']), external_gateway_info={'network_id': network['id']})
    ports = project.call('GET', 'network', '/ports', params={'network_id': subnet['network_id'], 'device_owner': 'network:router_interface'})['ports']
    if any(port['device_id'] == router['id'] for port in ports):
        return
    body = {'subnet_id': subnet['id']}
    if ports:
        port = project.call('POST', 'network', '/ports', {'port': {
            'network_id': subnet['network_id'], 'name': 'router-' + outside['name'], 'fixed_ips': [{'subnet_id': subnet['id']}]}})['port']
        body = {'port_id': port['id']}
    project.call('PUT', 'network', '/routers/%s/add_router_interface' % router['id'], body)


def hosts(admin, world, options):
    """Waits for Nova's hosts and puts computeN into the Nth zone, in turn; nova is the zone of those in no other."""
    names, zones = options.hosts, world['zones']
    end = time.time() + 180
    while True:
        up = {service['host'] for service in admin.call('GET', 'compute', '/os-services?binary=nova-compute')['services'] if service['state'] == 'up'}
        known = {host['service']['host'] for host in admin.call('GET', 'compute', '/os-hypervisors/detail')['hypervisors']}
        if up.issuperset(names) and known.issuperset(names):
            break
        if time.time() > end:
            sys.exit('hosts are missing: %s' % sorted(set(names) - (up & known)))
        time.sleep(0.5)
    for name in names:
        zone = zones[(int(name.removeprefix('compute')) - 1) % len(zones)]
        if zone == 'nova':
            continue
        aggregate = admin.ensure('compute', '/os-aggregates', 'aggregate', zone, availability_zone=zone)
        if name not in aggregate.get('hosts', []):
            admin.call('POST', 'compute', '/os-aggregates/%s/action' % aggregate['id'], {'add_host': {'host': name}})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('part', choices=('identity', 'resources', 'hosts'))
    parser.add_argument('--world', required=True)
    parser.add_argument('--password', required=True)
    parser.add_argument('--public-offset', type=int, required=True, help='added to the ports of the public endpoints')
    parser.add_argument('--hosts', nargs='+', required=True)
    parser.add_argument('--physical-network', help='the network of the world that is physnet1')
    parser.add_argument('--node-image', help='the folder of tools/nodeimage, which becomes the image %r' % NODE)
    parser.add_argument('--ports', nargs='+', type=int, required=True, help='of %s' % ', '.join(name for name, _, _ in SERVICES))
    options = parser.parse_args()
    with open(options.world) as file:
        world = json.load(file)
    {'identity': identity, 'resources': resources, 'hosts': hosts}[options.part](Cloud(options, 'admin'), world, options)


if __name__ == '__main__':
    main()
