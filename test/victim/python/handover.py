# SPDX-License-Identifier: MIT
"""A thread that lets the GIL go now and then, while the main thread is at work in C without it.

Writes how often step() was called to the file that is its argument, until the file END beside it is
there."""
import hashlib
import os
import sys
import threading

path = sys.argv[1]
calls = [0]


def step():
    calls[0] += 1


def work():
    while not os.path.exists(path + ".end"):
        for _ in range(300):
            for _ in range(20):
                step()
            os.stat("/")
        with open(path, "w") as f:
            f.write(str(calls[0]))


thread = threading.Thread(target=work, daemon=True)
thread.start()
print("ready", flush=True)
while not os.path.exists(path + ".end"):
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 3000000)  # seconds, without the GIL
thread.join()
print("self-check ok", flush=True)
