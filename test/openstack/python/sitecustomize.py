"""Gives each GreenThread of a service room for its calls.

CPython 3.11 keeps Python's frames in chunks of 16 KiB. A call that crosses the end of a chunk maps the next one, and its
return unmaps it. Nova and Neutron answer requests in stacks that are deeper than that, and did so up to 2,000 times a
second: it was more than half of nova-api's CPU time. A GreenThread's first frame is now so large that CPython takes a
chunk of 128 KiB for it, of which half is left for what it calls."""
import functools
import os

os.environ.setdefault('EVENTLET_NO_GREENDNS', 'yes')  # as Nova does, before eventlet is there

from eventlet import greenthread  # noqa: E402

SLOTS = 8200  # of 8 bytes: a little more than half of 128 KiB


def roomy(method):
    """Returns a method that calls this one from a frame of that size."""
    @functools.wraps(method)
    def start(*args):
        return method(*args)
    start.__code__ = start.__code__.replace(co_stacksize=SLOTS)
    return start


greenthread.GreenThread.main = roomy(greenthread.GreenThread.main)
