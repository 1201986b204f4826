# SPDX-License-Identifier: MIT
"""held.py FOLDER: one thread holds the GIL inside native code for 2.5 s at a time, another one calls
step() and waits in between; until FOLDER/stop is there."""
import ctypes
import os
import sys
import threading
import time

stop = os.path.join(sys.argv[1], "stop")
libc = ctypes.PyDLL(None)


def step():
    return 1


def hold():
    while not os.path.exists(stop):
        libc.usleep(2500000)


other = threading.Thread(target=hold)
other.start()
os.write(1, b"ready\n")
while not os.path.exists(stop):
    step()
    time.sleep(0.001)
other.join()
os.write(1, b"self-check ok\n")
