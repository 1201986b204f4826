# SPDX-License-Identifier: MIT
"""
midfork.py GATE GO: forks as soon as the file GATE exists, while another thread allocates. The child
waits for the file GO, calls step() 1000 times and says "child ready"; its parent never calls it. Both
run until SIGTERM, which the parent passes on.
"""
import os
import signal
import sys
import threading
import time

stop = False


def end(number, frame):
    global stop
    stop = True


def step(n):
    return n + 1


def wait_for(path):
    while not stop and not os.path.exists(path):
        time.sleep(0.0005)


def child():
    wait_for(sys.argv[2])
    total = 0
    for _ in range(1000):
        total = step(total)
    os.write(1, b"child ready\n")
    while not stop:
        time.sleep(0.002)
    os._exit(7 if total == 1000 else 1)


def beside():
    while not stop:
        [str(i) for i in range(100)]
        time.sleep(0.001)


signal.signal(signal.SIGTERM, end)
thread = threading.Thread(target=beside)
thread.start()
os.write(1, b"ready\n")
wait_for(sys.argv[1])
pid = 0 if stop else os.fork()
if pid == 0 and not stop:
    child()
if pid:
    os.write(1, b"child %d\n" % pid)
while not stop:
    time.sleep(0.002)
thread.join()
if pid:
    os.kill(pid, signal.SIGTERM)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 7, "the child ended with %d" % code
os.write(1, b"self-check ok\n")
