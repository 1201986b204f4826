# SPDX-License-Identifier: MIT
"""alone.py: the only thread calls step() over and over and never sleeps, until SIGTERM."""
import os
import signal

stop = False


def end(number, frame):
    global stop
    stop = True


def step():
    return 1


signal.signal(signal.SIGTERM, end)
os.write(1, b"ready\n")
while not stop:
    for _ in range(1000):
        step()
os.write(1, b"self-check ok\n")
