# SPDX-License-Identifier: MIT
"""brief.py SECONDS: a program that is soon over, with a thread, an import and work at its end."""
import atexit
import os
import sys
import threading
import time

getpid = os.getpid


def step():
    return getpid() > 0


def work(n):
    for _ in range(n):
        assert step()


atexit.register(lambda: (work(50), os.write(1, b"at exit\n")))
t = threading.Thread(target=work, args=(300,))
t.start()
import json  # noqa: E402

end = time.monotonic() + float(sys.argv[1])
while True:
    work(300)
    if time.monotonic() >= end:
        break
    time.sleep(0.002)
t.join()
assert json.loads("[1]") == [1]
os.write(1, b"done\n")
sys.exit(7)
