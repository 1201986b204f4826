# SPDX-License-Identifier: MIT
"""Counts of an attached session are vLLM's own, to the last one, and delays are what was asked."""
import os
import re

import session
from work import apply_load

DELAYS = {session.SCHEDULE: 2_000_000, session.TOKENS: 50_000}
TARGETS = [(session.ITERATIONS, "0"), (session.TOKENS, "50us"), (session.REQUESTS, "0"),
           (session.SCHEDULE, "2ms"), (session.FORWARD, "0")]


def compare(report, counted, before, after):
    for target, metric in session.METRICS.items():
        theirs = int(after[metric] - before[metric])
        if target in counted:
            report.must(counted[target] == theirs,
                        "%s: %d, vLLM says %d" % (target, counted[target], theirs))


def check_manual(report, metrics):
    """The manual's examples name metrics that this vLLM has; a histogram's name stands for its count."""
    page = os.path.join(os.path.dirname(__file__), "../../man/sbinject-sweep.1")
    with open(page, encoding="utf-8") as f:
        names = sorted(set(re.findall(r"#(vllm:\w+)", f.read())))
    missing = [n for n in names if n not in metrics and n + "_count" not in metrics]
    report.must(names and not missing, "sbinject-sweep(1) names %s%s" %
                (", ".join(names), "; missing: " + ", ".join(missing) if missing else ""))


def check(report, server):
    before = server.metrics()
    check_manual(report, before)
    s = session.Session(server.python_pid(), TARGETS)
    report.figure("in force after %.2f s" % s.wait_in_force())
    load = apply_load(server, rate=4, seconds=15)
    after = server.metrics()
    result = s.stop()
    compare(report, session.hits(result), before, after)
    report.must(not load["errors"], "%d requests, %d failed" %
                (load["requests"], len(load["errors"])))
    for target in result["targets"]:
        asked = DELAYS.get(target["spec"])
        if asked and target["given_ns"]:
            mean = target["given_ns"]["mean"]
            report.must(abs(mean - asked) < asked / 100, "%s: given %.0f ns on average, asked %d"
                        % (target["spec"], mean, asked))
