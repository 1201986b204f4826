# SPDX-License-Identifier: MIT
"""How long a reader waits for its next token while sbinject attaches and detaches, against how long
it waits without; and how long the interpreter's lock was held for it.

Rounds of both kinds take turns under one load. What else the machine does makes single gaps long in
either kind, so the median over rounds is judged, and the longest is shown."""
import os
import statistics
import subprocess
import time

import session
from work import Load

ROUNDS, ROUND_S = 8, 6
MOST_MORE_S = 0.050
MOST_HOLD_US, MOST_ATTACH_S, MOST_LIST_S = 5000, 1.0, 2.0
EVERY = [("py:*:*", "0")]
TARGETS = [(session.SCHEDULE, "0"), (session.TOKENS, "0"), (session.FORWARD, "0")]


def is_quiet():
    """Nothing but the server had run before the load began."""
    return os.getloadavg()[0] < 0.75 * os.cpu_count()


def attach_and_detach(pid, end, targets=None):
    s = session.Session(pid, targets or TARGETS)
    took = s.wait_in_force()
    time.sleep(max(0.0, min(1.0, end - time.monotonic())))
    result = s.stop()
    return took, max(result["gil_held_us"].values()), max(result["stop_us"].values())


def list_all(pid):
    """Seconds that a list of the functions of one module's tree takes, and its lines."""
    start = time.monotonic()
    done = subprocess.run([session.PROGRAM, "list", "-p", str(pid), "py:vllm.*:*"],
                          capture_output=True, text=True, timeout=session.PATIENCE_S)
    return time.monotonic() - start, done.stdout.count("\n")


def every_function(report, pid, quiet):
    """Attach to all of Python's functions at once, and detach; and a list of them."""
    tries = [attach_and_detach(pid, time.monotonic() + 1, EVERY)[:2] for _ in range(4)]
    took, held = (min(t[i] for t in tries) for i in range(2))
    report.figure("every Python function: in force after %.2f s (%.2f at most), longest hold of "
                  "the GIL %d us (%d in the worst attach)" %
                  (took, max(t[0] for t in tries), held, max(t[1] for t in tries)))
    listed, lines = min(list_all(pid) for _ in range(3))
    report.figure("list of %d functions of vllm.*: %.2f s" % (lines, listed))
    if quiet:
        report.must(held <= MOST_HOLD_US, "no hold above %d us" % MOST_HOLD_US)
        report.must(took <= MOST_ATTACH_S, "in force within %.0f s" % MOST_ATTACH_S)
        report.must(listed <= MOST_LIST_S, "listed within %.0f s" % MOST_LIST_S)


def longest(gaps, begin, end):
    return max((length for at, length in gaps if begin <= at < end), default=0.0)


def check(report, server):
    pid, windows, attaches, quiet = server.python_pid(), [], [], is_quiet()
    load = Load(server, rate=4, seconds=2 * ROUNDS * ROUND_S + 4)
    time.sleep(2)
    for _ in range(ROUNDS):
        begin = time.monotonic()
        time.sleep(ROUND_S)
        middle = time.monotonic()
        attaches.append(attach_and_detach(pid, middle + ROUND_S))
        time.sleep(max(0.0, middle + ROUND_S - time.monotonic()))
        windows.append((begin, middle, time.monotonic()))
    done = load.report()
    without = [longest(done["gaps"], a, b) for a, b, _ in windows]
    during = [longest(done["gaps"], b, c) for _, b, c in windows]
    more = statistics.median(during) - statistics.median(without)
    report.must(not done["errors"], "%d requests, %d failed %s" %
                (done["requests"], len(done["errors"]), done["errors"][:2]))
    report.figure("longest token gap without: median %.0f ms, of all %.0f ms" %
                  (statistics.median(without) * 1e3, max(without) * 1e3))
    report.figure("longest token gap with:    median %.0f ms, of all %.0f ms" %
                  (statistics.median(during) * 1e3, max(during) * 1e3))
    report.must(more < MOST_MORE_S, "%.0f ms more with an attach and a detach" % (more * 1e3))
    took, held, stopped = ([a[i] for a in attaches] for i in range(3))
    report.figure("in force after %.2f s (%.2f to %.2f), threads stopped for %d us at most" %
                  (statistics.median(took), min(took), max(took), max(stopped)))
    report.figure("longest hold of the GIL: %d us in the best attach, %d us in the worst" %
                  (min(held), max(held)))
    every_function(report, pid, quiet)
    if not quiet:
        report.figure("the machine is not idle: holds and times are not judged")
        return
    report.must(min(held) <= MOST_HOLD_US, "no hold above %d us" % MOST_HOLD_US)
    report.must(min(took) <= MOST_ATTACH_S, "in force within %.0f s" % MOST_ATTACH_S)
