"""ovn_chassis.py SOUTHBOUND VIFS HOST...: what ovn-controller would do on each host, without Open vSwitch.

It registers a chassis for each host, which may be a gateway, and keeps it alive. It takes the ports up that Neutron
has bound to a host, once Nova's driver has plugged them: when the file VIFS/PORT-ID is there. Taken up any earlier,
before Neutron has committed the binding, a port would stay DOWN. Gateway ports are taken up at once.
"""
import os
import sys
import time
import uuid

import ovs.db.idl
import ovs.poller
from ovs.db.idl import Transaction

SOUTHBOUND, VIFS, HOSTS = sys.argv[1], sys.argv[2], sys.argv[3:]
TABLES = ('SB_Global', 'Chassis', 'Chassis_Private', 'Encap', 'Port_Binding', 'HA_Chassis_Group', 'HA_Chassis')
# Any physical network can be reached: Neutron asks whether a gateway has the one of a router.
MAPPINGS = ','.join('external%d:br-ex%d' % (n, n) for n in range(1, 9))
OPTIONS = {
    'ovn-bridge-mappings': MAPPINGS, 'ovn-cms-options': 'enable-chassis-as-gw', 'datapath-type': 'system', 'is-interconn': 'false',
    'iface-types': 'dummy,dummy-internal,geneve,gre,internal,tap,vxlan', 'port-up-notif': 'true', 'ct-no-masked-label': 'true',
}


class Chassis:
    def __init__(self):
        helper = ovs.db.idl.SchemaHelper('/usr/share/ovn/ovn-sb.ovsschema')
        for table in TABLES:
            helper.register_table(table)
        self.idl = ovs.db.idl.Idl(SOUTHBOUND, helper)
        # Whether a port waits to be plugged: files do not wake anybody up.
        self.waiting = False

    def rows(self, table):
        return list(self.idl.tables[table].rows.values())

    def commit(self, change):
        transaction = Transaction(self.idl)
        change(transaction)
        status = transaction.commit_block()
        if status not in (Transaction.SUCCESS, Transaction.UNCHANGED):
            print('transaction', status, transaction.get_error(), flush=True)

    def register(self, transaction):
        registered = {chassis.hostname: chassis for chassis in self.rows('Chassis')}
        private = {chassis.name for chassis in self.rows('Chassis_Private')}
        for number, host in enumerate(HOSTS, 1):
            name = str(uuid.uuid5(uuid.NAMESPACE_DNS, host))
            chassis = registered.get(host) or self.add(transaction, name, host, '127.0.1.%d' % number)
            if name not in private:
                row = transaction.insert(self.idl.tables['Chassis_Private'])
                row.name, row.chassis, row.nb_cfg_timestamp = name, [chassis], milliseconds()

    def add(self, transaction, name, host, address):
        tunnel = transaction.insert(self.idl.tables['Encap'])
        tunnel.type, tunnel.ip, tunnel.chassis_name = 'geneve', address, name
        chassis = transaction.insert(self.idl.tables['Chassis'])
        chassis.name, chassis.hostname, chassis.encaps = name, host, [tunnel]
        chassis.external_ids = chassis.other_config = OPTIONS
        return chassis

    def sync(self, transaction):
        self.waiting = False
        for world in self.rows('SB_Global'):
            for chassis in self.rows('Chassis_Private'):
                if chassis.nb_cfg != world.nb_cfg:
                    chassis.nb_cfg, chassis.nb_cfg_timestamp = world.nb_cfg, milliseconds()
        by_host = {chassis.hostname: chassis for chassis in self.rows('Chassis')}
        for port in self.rows('Port_Binding'):
            if port.type == '':
                self.claim(port, by_host.get(port.options.get('requested-chassis', '')))
            elif port.type == 'chassisredirect' and port.ha_chassis_group:
                place(port, first_gateway(port))

    def claim(self, port, chassis):
        """A server's port."""
        if chassis is not None and not port.chassis and not os.path.exists(os.path.join(VIFS, port.logical_port)):
            self.waiting = True
            return
        place(port, chassis)
        up = chassis is not None
        if not port.up or port.up[0] != up:
            port.up = [up]

    def run(self):
        while not self.idl.has_ever_connected():
            self.idl.run()
            time.sleep(0.05)
        self.commit(self.register)
        seen = -1
        while True:
            self.idl.run()
            if self.idl.change_seqno != seen or self.waiting:
                changed, seen = self.idl.change_seqno != seen, self.idl.change_seqno
                self.commit(self.sync)
                if changed:
                    continue
            poller = ovs.poller.Poller()
            self.idl.wait(poller)
            poller.timer_wait(100 if self.waiting else 1000)
            poller.block()


def first_gateway(port):
    candidates = sorted(port.ha_chassis_group[0].ha_chassis, key=lambda candidate: -candidate.priority)
    return candidates[0].chassis[0] if candidates and candidates[0].chassis else None


def place(port, chassis):
    if (port.chassis[0] if port.chassis else None) == chassis:
        return
    port.chassis = [chassis] if chassis else []
    print('takes' if chassis else 'leaves', port.logical_port, chassis.hostname if chassis else '', flush=True)


def milliseconds():
    return int(time.time() * 1000)


if __name__ == '__main__':
    Chassis().run()
