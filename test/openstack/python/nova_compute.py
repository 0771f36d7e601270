"""Starts nova-compute as Debian's console script does, and lets it find fault_driver.py: Nova takes drivers only
from its own package nova.virt."""
import importlib.util
import os
import sys

sys.argv[0] = 'nova-compute'
from nova.cmd.compute import main  # patches the standard library before anything else
import nova.virt

NAME = 'fault_driver'

spec = importlib.util.spec_from_file_location('nova.virt.' + NAME, os.path.join(os.path.dirname(os.path.abspath(__file__)), NAME + '.py'))
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
setattr(nova.virt, NAME, module)
sys.exit(main())
