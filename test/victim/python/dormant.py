# SPDX-License-Identifier: MIT
"""dormant.py LOCK: step() over and over until SIGTERM. At SIGUSR1 it waits for a record lock on the
file, in C and without the interpreter's lock, and says so; no thread of it runs Python meanwhile.
"""
import fcntl
import os
import signal
import sys
import time

stop = wait = False
count = 0


def end(number, frame):
    global stop
    stop = True


def ask(number, frame):
    global wait
    wait = True


def step():
    global count
    count += 1


signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGUSR1, ask)
lock = open(sys.argv[1], "r+")
os.write(1, b"ready\n")
while not stop:
    step()
    time.sleep(0.001)
    if wait:
        wait = False
        os.write(1, b"waits\n")
        fcntl.lockf(lock, fcntl.LOCK_EX)
        fcntl.lockf(lock, fcntl.LOCK_UN)
        os.write(1, b"goes on\n")
os.write(1, b"calls step %d\nself-check ok\n" % count)
