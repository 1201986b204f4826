# SPDX-License-Identifier: MIT
"""sweep.py SHAPE: Python programs whose sensitivity to crit() is known.

serial   crit() in every item: kappa 1; each call of it takes 100 us itself, which is its ceiling
hidden   hid() runs beside an item that waits without the GIL, and ends 1 ms before it
ranks    two processes side by side: kappa 1
never    never() is not called
own      (LOG [REST_S]) how long calls of rec() and steps() take an item is written down while it runs, a line each
         few milliseconds: CLOCK_MONOTONIC, items, ns in rec(), ns in steps()
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


own = {"rec": 0, "steps": 0}


def rec(n):
    """By a call of its own, which is part of it, and out by an exception."""
    begin = time.perf_counter_ns()
    try:
        spin(40)
        if n:
            rec(n - 1)
        raise KeyError
    except KeyError:
        if n:
            raise
    finally:
        if n:
            own["rec"] += time.perf_counter_ns() - begin


def steps():
    """Only while it runs: the caller spins meanwhile, too."""
    while True:
        begin = time.perf_counter_ns()
        spin(60)
        own["steps"] += time.perf_counter_ns() - begin
        yield


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


def owns():
    g, items, due = steps(), 0, 0
    rest = float(sys.argv[3]) if len(sys.argv) > 3 else 0
    with open(sys.argv[2], "w", encoding="ascii") as log:
        while True:
            spin(100)
            next(g)
            try:
                rec(1)
            except KeyError:
                pass
            item()
            items += 1
            if rest:
                time.sleep(rest)
            now = time.monotonic()
            if now >= due:
                due = now + 0.005
                log.write(f"{now} {items} {own['rec']} {own['steps']}\n")
                log.flush()


def left_behind():
    """Tools and events of sys.monitoring that were not there before."""
    m = getattr(sys, "monitoring", None)
    if not m:
        return False
    tools = [i for i in range(6) if m.get_tool(i)]
    m.use_tool_id(3, "self-check")
    return tools or any(m.get_local_events(3, f.__code__) for f in (rec, steps, crit, item))


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
    os.write(1, b"left behind\n" if left_behind() else b"self-check ok\n")
    if sys.argv[1] == "ranks":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)
    os._exit(0)


go_first()
signal.signal(signal.SIGTERM, on_term)
print("ready", flush=True)
{"serial": serial, "hidden": hidden, "ranks": ranks, "never": serial, "own": owns}[sys.argv[1]]()
