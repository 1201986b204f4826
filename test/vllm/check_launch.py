# SPDX-License-Identifier: MIT
"""sbinject ... -- vllm serve: everything is counted from the first call on, and the start takes as
long as without.

Starts of all kinds take turns. The machine may be busy with other things in some of them: the
shortest of each kind is compared."""
import json
import os

import check_counts
import session
from server import Server
from work import apply_load

ROUNDS = int(os.environ.get("VLLM_ROUNDS", "3"))
MOST = 1.2
TWO = [(session.ITERATIONS, "0"), (session.REQUESTS, "0")]
EIGHT = TWO + [(session.TOKENS, "0"), (session.SCHEDULE, "0"), (session.FORWARD, "0"),
               ("libtorch_cpu.so:at::_ops::linear::call(*", "0"),
               ("libtorch_cpu.so:at::native::linear(*", "0"), ("libc.so.6:epoll_wait", "0")]
KINDS = {"alone": [], "two targets": TWO, "eight targets": EIGHT}


def start(report, folder, kind, targets):
    """Seconds until the server answers."""
    result = os.path.join(folder, "launch.json")
    prefix = [session.PROGRAM, *session.words(targets), "--json", result, "-q", "--"]
    server = Server(os.path.join(folder, "model"), os.path.join(folder, "launch.log"),
                    prefix if targets else [])
    try:
        took = server.wait()
        load = apply_load(server, rate=4, seconds=3)
        counted = server.metrics()
    finally:
        server.stop()
    report.figure("%-14s %6.1f s" % (kind, took))
    if load["errors"]:
        report.must(False, "%d failed requests" % len(load["errors"]))
    if targets:
        with open(result, encoding="utf-8") as f:
            hits = session.hits(json.load(f))
        check_counts.compare(report, hits, dict.fromkeys(counted, 0), counted)
    return took


def check(report, folder):
    took = {kind: [] for kind in KINDS}
    for _ in range(ROUNDS):
        for kind, targets in KINDS.items():
            took[kind].append(start(report, folder, kind, targets))
    for kind in list(KINDS)[1:]:
        ratio = min(took[kind]) / min(took["alone"])
        report.must(ratio < MOST, "the start with %s takes %.2f times as long" % (kind, ratio))
