# SPDX-License-Identifier: MIT
"""walked.py sleep|busy: step() over and over, until SIGTERM; then nothing may have changed."""
import os
import signal
import sys
import threading
import time

import state

stop = False
beside = threading.Event()


def end(number, frame):
    global stop
    stop = True


def step():
    return 1


def masked():
    return signal.pthread_sigmask(signal.SIG_BLOCK, [])


def other(masks):
    masks.append(masked())
    beside.wait()
    masks.append(masked())


signal.signal(signal.SIGTERM, end)
masks = []
thread = threading.Thread(target=other, args=(masks,))
thread.start()
before = state.settings()
os.write(1, b"ready\n")
while not stop:
    for _ in range(1000 if sys.argv[1] == "busy" else 3):
        step()
    if sys.argv[1] == "sleep":
        time.sleep(0.01)
state.same(before)
beside.set()
thread.join()
assert masks[0] == masks[1], "the mask of a thread: %r, was %r" % (masks[1], masks[0])
os.write(1, b"self-check ok\n")
