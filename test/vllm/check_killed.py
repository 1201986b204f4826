# SPDX-License-Identifier: MIT
"""SIGKILL of sbinject, its tracer or both, at random moments: the server answers on; recover makes
it what it was, and a session works afterwards."""
import os
import random
import signal
import subprocess
import time

import check_counts
import session
from work import Load, apply_load

ROUNDS = 20
TARGETS = [(session.ITERATIONS, "20us"), (session.TOKENS, "10us"), (session.FORWARD, "20us")]
TEXTCHECK = os.path.join(os.environ.get("TOOL", "build/test/tool"), "textcheck")


def kill(pid):
    if pid:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def await_end(tracer):
    """It sees that its client has gone, and lets go by itself: after its attach, which may take
    seconds here."""
    until = time.monotonic() + session.PATIENCE_S
    while tracer and os.path.exists("/proc/%d" % tracer):
        if time.monotonic() > until:
            raise RuntimeError("the tracer does not end after SIGKILL of its client")
        time.sleep(0.05)


def strike(s, who):
    tracer = s.tracer()  # found before its parent ends
    if who != "client":
        kill(tracer)
    if who != "tracer" or not tracer:
        kill(s.process.pid)
    try:
        s.process.wait(session.PATIENCE_S)
    except subprocess.TimeoutExpired:
        kill(s.process.pid)
        raise RuntimeError("sbinject does not end after SIGKILL of its %s" % who)
    if who == "client":
        await_end(tracer)


def unchanged(report, server, text, when):
    """Nothing of sbinject is mapped in any process; text: and its code is its files'."""
    for pid in server.pids():
        with open("/proc/%d/maps" % pid) as f:
            left = [line for line in f if "memfd:sbinject" in line]
        if left:
            report.must(False, "%s: process %d still maps %s" % (when, pid, "".join(left)))
        if not text:  # it reads all of torch
            continue
        done = subprocess.run([TEXTCHECK, str(pid)], capture_output=True, text=True)
        if done.returncode:
            report.must(False, "process %d: %s" % (pid, done.stdout))


def check(report, server):
    rng, failed, requests, errors = random.Random(20), 0, 0, []
    pid = server.python_pid()
    for i in range(ROUNDS):
        who = rng.choice(("both", "both", "tracer", "client"))
        load = Load(server, rate=3, seconds=4)
        time.sleep(rng.uniform(0, 0.5))
        s = session.Session(pid, TARGETS)
        time.sleep(rng.uniform(0, 2.5))
        strike(s, who)
        time.sleep(rng.uniform(0, 0.5))
        status, said = session.recover(pid)
        if status:
            failed += 1
            report.figure("round %d (%s): recover ended with %d: %s" % (i, who, status, said))
        done = load.report()
        requests += done["requests"]
        errors += done["errors"]
        unchanged(report, server, i % 5 == 4, "round %d (%s, recover: %s)" % (i, who, said.strip()))
    report.must(failed == 0, "%d rounds, recover failed in %d" % (ROUNDS, failed))
    report.must(not errors, "%d requests, %d failed %s" % (requests, len(errors), errors[:2]))
    before = server.metrics()
    s = session.Session(pid, TARGETS)
    s.wait_in_force()
    apply_load(server, rate=4, seconds=3)
    after = server.metrics()
    check_counts.compare(report, session.hits(s.stop()), before, after)
    unchanged(report, server, True, "at the end")
