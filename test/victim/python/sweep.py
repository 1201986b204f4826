# SPDX-License-Identifier: MIT
"""sweep.py SHAPE: Python programs whose sensitivity to crit() is known.

serial   crit() in every item: kappa 1; each call of it takes 100 us itself, which is its ceiling
hidden   hid() runs beside an item that waits without the GIL, and ends 1 ms before it
ranks    two processes side by side: kappa 1
never    never() is not called
"""

import os
import signal
import sys
import threading
import time


def spin(us):
    until = time.perf_counter_ns() + us * 1000
    while time.perf_counter_ns() < until:
        pass


def crit():
    spin(100)


def hid():
    pass


def never():
    pass


def item():
    pass


def go_first():
    try:
        os.setsid()
    except OSError:
        pass
    try:
        with open("/proc/self/autogroup", "w", encoding="ascii") as f:
            f.write("-19")
        os.nice(-15)
    except OSError:
        pass


def serial():
    while True:
        spin(400)
        crit()
        item()


def hidden():
    begin, end = threading.Semaphore(0), threading.Semaphore(0)

    def helper():
        while True:
            begin.acquire()
            time.sleep(0.001)
            hid()
            end.release()

    threading.Thread(target=helper, daemon=True).start()
    while True:
        begin.release()
        time.sleep(0.002)
        end.acquire()
        crit()
        item()


def ranks():
    for _ in range(2):
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            while True:
                time.sleep(0.001)
                crit()
                item()
    signal.pause()


def on_term(_sig, _frame):
    os.write(1, b"self-check ok\n")
    if sys.argv[1] == "ranks":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)
    os._exit(0)


go_first()
signal.signal(signal.SIGTERM, on_term)
print("ready", flush=True)
{"serial": serial, "hidden": hidden, "ranks": ranks, "never": serial}[sys.argv[1]]()
