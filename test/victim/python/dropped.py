# SPDX-License-Identifier: MIT
"""dropped.py DIR: calls step() and other(). When DIR/go is there it forks a worker that becomes
nobody and from then on writes a header into the page that it shares with its parent: all is as it
was, but notes go to where a buffer of the parent's lies, the tables of threads to nowhere, and
sizes are larger. The buffer must stay as it is. It knows the layout."""
import ctypes
import mmap
import os
import signal
import struct
import sys
import time

where = sys.argv[1]
over = []
signal.signal(signal.SIGTERM, lambda *a: over.append(1))
libc = ctypes.CDLL(None)
libc.process_vm_writev.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p,
                                   ctypes.c_ulong, ctypes.c_ulong]
MINE = 2 << 20
buffer = mmap.mmap(-1, MINE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
mine = ctypes.addressof(ctypes.c_char.from_buffer(buffer))


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


def step():
    return 1


def other():
    return 2


def third():
    return 3


def page():
    with open("/proc/self/maps") as f:
        for line in f:
            if "/memfd:sbinject " in line:
                start, end = (int(x, 16) for x in line.split()[0].split("-"))
                if end - start > 4 << 20:
                    return start
    return None


def put(at, data):
    here = ctypes.create_string_buffer(data, len(data))
    a, b = Vector(ctypes.addressof(here), len(data)), Vector(at, len(data))
    libc.process_vm_writev(os.getpid(), ctypes.byref(a), 1, ctypes.byref(b), 1, 0)


def worker():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    at = page()
    while True:
        put(at + 24, struct.pack("<Q", 1 << 62))  # size
        put(at + 72, struct.pack("<QQ", 1 << 61, 1))  # threads_off, tsc_hz
        put(at + 112, struct.pack("<QQ", mine - at & (1 << 64) - 1, MINE))  # notes
        put(at + 128, struct.pack("<Q", 1 << 62))  # lease_until
        put(at + 152, struct.pack("<Q", 0))  # notes_used
        if not os.path.exists(where + "/scribbled"):
            open(where + "/scribbled", "w").close()


print("ready", flush=True)
child, n = 0, 0
os.chmod(where, 0o777)
while not over:
    assert step() == 1 and other() == 2 and third() == 3
    n += 1
    if n % 16 == 0:
        time.sleep(0.0005)
    if n % 256 == 0 and not child and os.path.exists(where + "/go"):
        child = os.fork()
        if not child:
            worker()
    if n % 256 == 0:
        with open(where + "/progress", "w") as f:
            f.write(str(n))
if child:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
if buffer.find(b"step") >= 0 or bytes(buffer[:4096]) != bytes(4096):
    print("the buffer was written to", bytes(buffer[:64]))
    sys.exit(1)
print("self-check ok", flush=True)
