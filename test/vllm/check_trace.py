# SPDX-License-Identifier: MIT
"""Recorded calls are vLLM's own, to the last one, and the trace reads back whole."""
import collections
import json
import os
import subprocess
import tempfile

import session
from work import apply_load

TARGETS = [(session.ITERATIONS, "0"), (session.TOKENS, "0"), (session.SCHEDULE, "0"),
           (session.FORWARD, "0"), ("libc.so.6:pthread_cond_wait", "0")]
NAMES = {session.ITERATIONS: "IterationStats.__init__",
         session.TOKENS: "IterationStats.update_from_output"}


def read(folder, trace):
    """Its spans, by way of the report's conversion."""
    lines = os.path.join(folder, "calls.jsonl")
    subprocess.run([session.PROGRAM, "report", trace, "-o", lines], check=True,
                   stdout=subprocess.DEVNULL)
    with open(lines, encoding="utf-8") as f:
        return [o for o in map(json.loads, f) if o["phase"] == "X"]


def check(report, server):
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "vllm.pftrace")
        before = server.metrics()
        s = session.Session(server.python_pid(), TARGETS, "-o", trace, verb=["trace"])
        s.wait_in_force()
        load = apply_load(server, rate=4, seconds=15)
        after = server.metrics()
        result = s.stop()
        spans = read(folder, trace)
        size = os.path.getsize(trace)
    names = collections.Counter(o["name"] for o in spans)
    recorded = result["trace"]
    report.must(not load["errors"], "%d requests, %d failed" %
                (load["requests"], len(load["errors"])))
    for target, name in NAMES.items():
        metric = session.METRICS[target]
        theirs = int(after[metric] - before[metric])
        report.must(names[name] == theirs, "%s: %d recorded, vLLM says %d" %
                    (name, names[name], theirs))
    report.must(recorded["lost"] == 0, "%d lost" % recorded["lost"])
    report.must(len(spans) == recorded["calls"], "%d calls recorded, %d read back" %
                (recorded["calls"], len(spans)))
    report.must({o["type"] for o in spans} >= {"python", "native"}, "of Python and native functions")
    report.must(len({o["pid"] for o in spans}) > 1, "in %d processes, %d threads" %
                (len({o["pid"] for o in spans}), len({o["tid"] for o in spans})))
    report.must(0 not in {o["tid"] for o in spans}, "every thread has its number")
    report.figure("%.1f bytes a call" % (size / max(1, len(spans))))
