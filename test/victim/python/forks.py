# SPDX-License-Identifier: MIT
"""forks.py FOLDER: forks children that call step(), over and over, until FOLDER/stop is there."""
import os
import sys
import time

folder = sys.argv[1]


def step():
    return 1


def child():
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        step()
        time.sleep(0.0005)
    os._exit(7)


os.write(1, b"ready\n")
forked = 0
while not os.path.exists(os.path.join(folder, "stop")):
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        child()
    _, status = os.waitpid(pid, 0)
    assert status == 7 << 8, "a child ended with %#x" % status
    assert time.monotonic() - begin < 20, "a child was held up"
    step()
    forked += 1
    os.write(1, b"forked %d\n" % forked)
os.write(1, b"self-check ok\n")
