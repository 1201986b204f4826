# SPDX-License-Identifier: MIT
"""Counts of an attached session are vLLM's own, to the last one, and delays are what was asked."""
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


def check(report, server):
    before = server.metrics()
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
