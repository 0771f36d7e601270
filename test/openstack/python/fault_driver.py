"""compute_driver = fault_driver.FaultDriver: Nova's fake driver, nearer to a hypervisor and able to fail.

Nearer: it leaves a file in $OPENSTACK_VIFS for each interface that it plugs, upon which ovn_chassis.py takes the port
up, and it finishes a build when Neutron has said so, as libvirt's driver does.

It fails where a server's metadata say test-fault=FAULT (and test-fault-words=WORDS, for abort), or a rule in the file
$OPENSTACK_FAULTS does, which is read anew each time: a list of {"match": "pattern of the server's name", "fault": FAULT,
"seconds": 20, "times": 1}. "times" counts over all hosts; without it a rule holds for ever.

    abort       the build fails, no other host is tried      slow     the build takes seconds (20) longer
    reschedule  the build fails, other hosts are tried       hang     the build does not end
    crash       nova-compute dies in the build               destroy  the server cannot be destroyed
"""
import fnmatch
import json
import os

import eventlet
from nova import exception
from nova.conf import CONF
from nova.virt import fake
from oslo_log import log as logging

LOG = logging.getLogger(__name__)
VIFS = os.environ['OPENSTACK_VIFS']
FAULTS = os.environ['OPENSTACK_FAULTS']
METADATA = 'test-fault'
OF_BUILDS = ('abort', 'reschedule', 'slow', 'hang', 'crash')
OF_DESTRUCTION = ('destroy',)


def take(number, rule):
    """Uses a rule once; False if it is used up. A file for each use counts for all processes."""
    for use in range(int(rule['times'])):
        try:
            os.close(os.open('%s.used-%d-%d' % (FAULTS, number, use), os.O_CREAT | os.O_EXCL))
            return True
        except FileExistsError:
            pass
    return False


def rules():
    try:
        with open(FAULTS) as file:
            return json.load(file)
    except (OSError, ValueError):
        return []


def fault_of(instance, kinds):
    """The rule that an instance is to fail by, or None."""
    metadata = instance.metadata or {}
    if metadata.get(METADATA) in kinds:
        return {'fault': metadata[METADATA], 'words': metadata.get(METADATA + '-words')}
    for number, rule in enumerate(rules()):
        if rule.get('fault') not in kinds or not fnmatch.fnmatch(instance.display_name or '', rule.get('match', '*')):
            continue
        if 'times' not in rule or take(number, rule):
            return rule
    return None


class FaultDriver(fake.FakeDriver):
    def plug_vifs(self, instance, network_info):
        os.makedirs(VIFS, exist_ok=True)
        for vif in network_info or []:
            with open(os.path.join(VIFS, vif['id']), 'w') as file:
                file.write(CONF.host)

    def unplug_vifs(self, instance, network_info):
        for vif in network_info or []:
            try:
                os.unlink(os.path.join(VIFS, vif['id']))
            except FileNotFoundError:
                pass

    def spawn(self, context, instance, image_meta, injected_files, admin_password, allocations, network_info=None, **kwargs):
        self.fail(instance)
        super().spawn(context, instance, image_meta, injected_files, admin_password, allocations, network_info, **kwargs)
        if network_info:
            self.wait_for_network(instance, network_info)

    def fail(self, instance):
        rule = fault_of(instance, OF_BUILDS)
        if rule is None:
            return
        fault = rule['fault']
        LOG.warning('test fault %s', fault, instance=instance)
        if fault == 'abort':
            raise exception.BuildAbortException(instance_uuid=instance.uuid, reason=rule.get('words') or 'test fault: abort')
        if fault == 'reschedule':
            raise exception.ComputeResourcesUnavailable(reason='test fault: reschedule')
        if fault == 'crash':
            os._exit(1)
        if fault == 'slow':
            eventlet.sleep(float(rule.get('seconds', 20)))
        while fault == 'hang':
            eventlet.sleep(1)

    def wait_for_network(self, instance, network_info):
        """Plugs, and waits until Neutron tells of it; the wait has to begin before."""
        events = [('network-vif-plugged', vif['id']) for vif in network_info if vif.get('active', True) is False]
        try:
            with self.virtapi.wait_for_instance_event(instance, events, deadline=CONF.vif_plugging_timeout, error_callback=lambda *_: False):
                self.plug_vifs(instance, network_info)
        except eventlet.timeout.Timeout:
            LOG.warning('no word of %s', events, instance=instance)
            if CONF.vif_plugging_is_fatal:
                raise exception.VirtualInterfaceCreateException()

    def destroy(self, context, instance, network_info, *args, **kwargs):
        if fault_of(instance, OF_DESTRUCTION):
            raise exception.NovaException('test fault: destroy')
        self.unplug_vifs(instance, network_info)
        super().destroy(context, instance, network_info, *args, **kwargs)

    def attach_interface(self, context, instance, image_meta, vif):
        super().attach_interface(context, instance, image_meta, vif)
        self.plug_vifs(instance, [vif])

    def detach_interface(self, context, instance, vif):
        super().detach_interface(context, instance, vif)
        self.unplug_vifs(instance, [vif])
