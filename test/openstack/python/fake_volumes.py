"""volume_driver = fake_volumes.FakeVolumes: a back end of Cinder that keeps nothing. Volumes exist in Cinder's database
alone; Nova's fake driver attaches them without asking for more."""
from cinder import interface
from cinder.volume import driver


@interface.volumedriver
class FakeVolumes(driver.VolumeDriver):
    VERSION = '1.0'

    def do_setup(self, context):
        pass

    def check_for_setup_error(self):
        pass

    def _update_volume_stats(self):
        self._stats = {
            'volume_backend_name': self.configuration.safe_get('volume_backend_name'), 'vendor_name': 'none', 'driver_version': self.VERSION,
            'storage_protocol': 'fake', 'total_capacity_gb': 1000000, 'free_capacity_gb': 1000000, 'reserved_percentage': 0,
            'thin_provisioning_support': True, 'thick_provisioning_support': False, 'max_over_subscription_ratio': '20.0',
        }

    def create_volume(self, volume):
        return {}

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        """Says that the image is in the volume, so that nobody copies it."""
        return {}, True

    def create_volume_from_snapshot(self, volume, snapshot):
        return {}

    def create_cloned_volume(self, volume, src_vref):
        return {}

    def extend_volume(self, volume, new_size):
        pass

    def delete_volume(self, volume):
        pass

    def create_snapshot(self, snapshot):
        return {}

    def delete_snapshot(self, snapshot):
        pass

    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        return {}

    def remove_export(self, context, volume):
        pass

    def initialize_connection(self, volume, connector, **kwargs):
        return {'driver_volume_type': 'fake', 'data': {'volume_id': volume['id']}}

    def terminate_connection(self, volume, connector, **kwargs):
        pass
