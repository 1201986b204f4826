# SPDX-License-Identifier: MIT
"""many.py MODULES FILE [loose] [mapped]: a program of so many modules, out of the garbage collector's
sight (as in servers that fork) unless `loose` is given, which is busy all the time. `mapped`: with a
thousand mappings of a file more, as a program of many libraries has. When FILE is there, it
calls a function of each module, and others, takes FILE away, and goes on until SIGTERM. A second
thread looks at the clock.
"""
import gc
import marshal
import mmap
import os
import signal
import sys
import threading
import time
import types

MODULES, FILE = int(sys.argv[1]), sys.argv[2]
stop = False
SOURCE = "".join("""
def wrapped%d(f):
    def inside(): return f()
    return inside
@wrapped%d
def hidden%d(): pass
class C%d:
    def method(self): return [x for x in (1, 2)]
    @property
    def attribute(self): return 2
    @staticmethod
    def static(): return lambda: 3
    @classmethod
    def made(cls): return cls()
""" % (i, i, i, i) for i in range(12)) + "def called(): pass\n"


def end(number, frame):
    global stop
    stop = True


def load(name, code):
    """Each has code of its own, as if read from a file."""
    module = types.ModuleType(name)
    exec(marshal.loads(code), module.__dict__)
    sys.modules[name] = module
    return module


def turn():
    return 1


def calls():
    for module in modules:
        module.called()
        module.hidden7()
        module.C3.made().method()


signal.signal(signal.SIGTERM, end)
code = marshal.dumps(compile(SOURCE, "many", "exec"))
modules = [load("many.m%d" % i, code) for i in range(MODULES)]
if "mapped" in sys.argv:
    with open(os.path.realpath(__file__), "rb") as f:
        maps = [mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ) for _ in range(1000)]
if "loose" not in sys.argv:
    gc.freeze()
threading.Thread(target=lambda: [time.sleep(0.001) for _ in iter(lambda: stop, True)]).start()
os.write(1, b"ready\n")
while not stop:
    for _ in range(1000):
        turn()
    if os.path.exists(FILE):
        # Made after the attach as well: what is new is seen as what was there.
        modules.append(load("many.new%d" % len(modules), code))
        calls()
        os.unlink(FILE)
os.write(1, b"self-check ok\n")
