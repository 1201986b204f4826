# SPDX-License-Identifier: MIT
"""closes.py LOG: step() over and over until SIGTERM, beside a thread that closes every descriptor from 3
to 255 all the time, as programs do that do not know what they were given. It opens files of its own
as well, with a text that must be theirs to the end.
"""
import os
import signal
import sys
import threading
import time

stop = False
count = 0


def end(number, frame):
    global stop
    stop = True


def step():
    global count
    count += 1


def closes():
    while not stop:
        os.closerange(3, 256)


def writes(names):
    """Files that are there for a moment each, until they are closed as well."""
    n = 0
    while not stop:
        name = "%s.%d" % (sys.argv[1], n % 8)
        n += 1
        names.add(name)
        try:
            fd = os.open(name, os.O_RDWR | os.O_CREAT)
            os.write(fd, b"mine")
            os.close(fd)
        except OSError:
            pass
        time.sleep(0.0005)


signal.signal(signal.SIGTERM, end)
names = set()
threads = [threading.Thread(target=closes), threading.Thread(target=writes, args=(names,))]
for thread in threads:
    thread.start()
os.write(1, b"ready\n")
while not stop:
    step()
    time.sleep(0.0002)
for thread in threads:
    thread.join()
for name in names:
    with open(name, "rb") as f:
        text = f.read()
    assert text in (b"", b"mine"), (name, text[:64])
os.write(1, b"calls step %d\nself-check ok\n" % count)
