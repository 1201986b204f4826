# SPDX-License-Identifier: MIT
"""plain.py: step() over and over until SIGTERM; for every Python there is, 2.7 too."""
import os
import signal
import sys
import time


def step():
    return 1


stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
calls = 0
os.write(1, b"ready\n")
while not stop and (len(sys.argv) < 2 or calls < int(sys.argv[1])):
    calls += step()
    time.sleep(0.0005)
os.write(1, ("calls step %d\nself-check ok\n" % calls).encode())
