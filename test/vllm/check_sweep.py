# SPDX-License-Identifier: MIT
"""In two minutes a sweep tells a function on the critical path from one beside it: the engine's scheduler,
which each iteration waits for, and what the API server does with the tokens of an iteration while the
engine makes the next ones. One client in a closed loop: with eight the intervals are
three times as wide. An item is an iteration of the engine."""
import json
import os
import subprocess
import tempfile
import time

import session
from work import Load

OUTPUT = "py:vllm.*:OutputProcessor.process_outputs"
TIME_S, CLIENTS = 100, 1
MOST_S = 120  # attach and detach included


def sweep(pid, folder):
    """Its document, what it printed, and the seconds that it took."""
    path = os.path.join(folder, "sweep.json")
    start = time.monotonic()
    done = subprocess.run(
        [session.PROGRAM, "sweep", "-q", "-p", str(pid), session.SCHEDULE, OUTPUT, "--progress",
         session.ITERATIONS, "--time", "%ds" % TIME_S, "--json", path],
        capture_output=True, text=True, timeout=TIME_S + session.PATIENCE_S)
    with open(path, encoding="utf-8") as f:
        return json.load(f), done.stdout + done.stderr, time.monotonic() - start


def check(report, server):
    load = Load(server, seconds=MOST_S, clients=CLIENTS)
    with tempfile.TemporaryDirectory() as folder:
        document, text, took = sweep(server.python_pid(), folder)
    load = load.report()
    for line in text.splitlines():
        report.figure(line)
    report.must(not load["errors"], "%d requests, %d failed" %
                (load["requests"], len(load["errors"])))
    schedule, output = document["targets"]
    report.must(took <= MOST_S, "the sweep took %.0f s, attach and detach included" % took)
    report.must(schedule["verdict"] == "CRITICAL", "the scheduler is " + schedule["verdict"])
    report.must(output["verdict"] != "CRITICAL", "the output is " + output["verdict"])
    report.must(None not in schedule["kappa_ci"] + output["kappa_ci"] and
                output["kappa_ci"][1] < schedule["kappa_ci"][0], "their intervals are apart")
