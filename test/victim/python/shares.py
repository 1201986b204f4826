# SPDX-License-Identifier: MIT
"""
shares.py: one thread runs three functions in turn, in known parts of its time; two others wait.

It says "share QUALNAME PART" of each at the end, by the thread's own clock. Loaded as a module, too:
parts.packs(), most of whose time is in a function in C that it calls.
"""
import os
import signal
import sys
import threading
import time
import types
import zlib

SOURCE = "def packs():\n    return zlib.compress(data, 9)\n"
over = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: over.set())
spent = {}


class Work:
    def heavy(self):
        total = 0
        for i in range(60000):
            total += i % 7
        return total


def light():
    total = 0
    for i in range(20000):
        total += i % 7
    return total


def waits():
    while not over.is_set():
        time.sleep(0.01)


def timed(name, function):
    begin = time.thread_time()
    function()
    spent[name] = spent.get(name, 0) + time.thread_time() - begin


def items():
    parts = types.ModuleType("parts")
    parts.zlib = zlib
    parts.data = os.urandom(20000) * 2
    exec(compile(SOURCE, "/parts.py", "exec"), parts.__dict__)
    work = Work()
    while not over.is_set():
        timed("__main__:Work.heavy", work.heavy)
        timed("__main__:light", light)
        timed("parts:packs", parts.packs)


threads = [threading.Thread(target=items), threading.Thread(target=waits),
           threading.Thread(target=over.wait)]
for thread in threads:
    thread.start()
print("ready", flush=True)
for thread in threads:
    thread.join()
for name, seconds in spent.items():
    print("share", name, seconds / sum(spent.values()))
print("self-check ok", flush=True)
sys.exit(0)
