# SPDX-License-Identifier: MIT
"""SIGKILL of sbinject, its tracer or both, at random moments: the server answers on; recover makes it
what it was, and a session works afterwards."""
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


def strike(s, who):
    tracer = s.tracer()  # found before its parent ends
    if who != "client":
        kill(tracer)
    if who != "tracer":
        kill(s.process.pid)
    s.process.wait(session.PATIENCE_S)


def unchanged(report, server):
    """Its code is its files', in every process, and nothing of sbinject is mapped."""
    for pid in server.pids():
        done = subprocess.run([TEXTCHECK, str(pid)], capture_output=True, text=True)
        with open("/proc/%d/maps" % pid) as f:
            left = [line for line in f if "sbinject" in line]
        if done.returncode or left:
            report.must(False, "process %d: %s%s" % (pid, done.stdout, "".join(left)))


def check(report, server):
    rng, failed = random.Random(20), 0
    pid = server.python_pid()
    load = Load(server, rate=2, seconds=ROUNDS * 5)
    for i in range(ROUNDS):
        who = rng.choice(("both", "both", "tracer", "client"))
        s = session.Session(pid, TARGETS)
        time.sleep(rng.uniform(0, 2.5))
        strike(s, who)
        time.sleep(rng.uniform(0, 0.5))
        status, said = session.recover(pid)
        if status:
            failed += 1
            report.figure("round %d (%s): recover ended with %d: %s" % (i, who, status, said))
        unchanged(report, server)
    report.must(failed == 0, "%d rounds, recover failed in %d" % (ROUNDS, failed))
    done = load.report()
    report.must(not done["errors"], "%d requests, %d failed %s" %
                (done["requests"], len(done["errors"]), done["errors"][:2]))
    before = server.metrics()
    s = session.Session(pid, TARGETS)
    s.wait_in_force()
    apply_load(server, rate=4, seconds=3)
    after = server.metrics()
    check_counts.compare(report, session.hits(s.stop()), before, after)
    unchanged(report, server)
