# SPDX-License-Identifier: MIT
"""torture.py RUN.json TORTURE.json LEAST [own]: what sbinject measured against what the victim did itself.

sbinject's stamps lie a little outside of the victim's. So of the calls that it measured, no more may
take T or longer than of the victim's take nearly T or longer, and no more may be shorter than T, for
every T; but for a few that were interrupted between the two stamps. A call that is matched with
another's beginning would be too long or too short by the time between two calls.

Each call is measured or missed, and LEAST of those that returned are measured. own: the functions'
own times make up the time of the calls that no other call made.
"""
import json
import sys

STEPS = 32
SLACK_NS = 400  # between the two stamps
BUCKET = 0.04  # width of a bucket, and a little more
NESTED = 0.35  # of a call with short timed calls in it: the time that it takes to measure these
# ... and nothing else: on a machine where a timed call costs 50 ns, these are most of what a level takes
DEEP = 3.0
FLAT = {"t_leaf", "t_hand", "t_torn", "t_tail", "t_thrower"}  # with none, or with long ones
PREEMPTED_NS = 300e6  # on a machine with ten times the load that it can bear


def edge(bucket):
    return bucket if bucket < STEPS else (STEPS + bucket % STEPS) << (bucket // STEPS - 1)


run, own = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
least = float(sys.argv[3])
tick = own["ns_per_tick"]
few = 4 + 2 * own["in_stub"] + own["switches"] // 5
COLD_NS = 50000  # a stub takes no longer where others have used the caches meanwhile
wrong = []


def check(good, *words):
    if not good:
        wrong.append(" ".join(map(str, words)))


def as_long(rows, ns):
    """How many of [from, to, calls] took ns or longer: at least, at most."""
    return sum(n for start, _, n in rows if start >= ns), sum(n for _, end, n in rows if end > ns)


def compare_times(name, spans, mine, may_differ):
    rows = [(edge(i) * tick, edge(i + 1) * tick, n) for i, n in mine["histogram"]]
    seen, worst = spans["histogram"], 0
    down = BUCKET if name in FLAT else DEEP if name == "t_deep" else NESTED
    for i in range(200, 1100, 4):
        ns = edge(i) * tick
        if ns < 2 * SLACK_NS:
            continue
        over = as_long(seen, ns)[0] - as_long(rows, ns * (1 - BUCKET) - SLACK_NS)[1]
        cold = own["switches"] + mine["calls"] // 1000 if ns < COLD_NS else 0
        check(over <= few + cold + may_differ, name, over, "calls too many of", round(ns), "ns and more")
        under = spans["calls"] - as_long(seen, ns)[1]
        under -= mine["calls"] - as_long(rows, ns * (1 + 2 * down) + SLACK_NS)[0]
        check(under <= few // 20 + 4 + may_differ, name, under, "calls too many below", round(ns), "ns")
        worst = max(worst, over, under)
    most = mine["max"] * tick
    check(spans["max_ns"] <= most * (1 + BUCKET) + PREEMPTED_NS, name, "most", round(most), "but", spans["max_ns"])
    check(spans["min_ns"] >= mine["min"] * tick * (1 - BUCKET) - SLACK_NS, name, "least", spans["min_ns"])
    return worst


def compare(name, spans, mine):
    torn = own["jumps"] if name == "t_torn" else 0  # calls that a handler did not return to
    calls, missed, worst = spans["calls"], spans["missed"], 0
    check(mine["began"] - torn <= calls + missed <= mine["began"], name, mine["began"], "began, but", calls, missed)
    check(calls <= mine["calls"] + torn, name, mine["calls"], "returned, but", calls)
    check(calls >= mine["calls"] * least, name, mine["calls"], "returned, but only", calls)
    check(abs(sum(row[2] for row in spans["histogram"]) - calls) <= torn, name, "histogram")
    if calls and mine["calls"]:
        worst = compare_times(name, spans, mine, torn)
        print(f"{name}: {calls} of {mine['calls']}, {missed} missed; mean {spans['inclusive_ns'] / calls:.0f} of"
              f" {mine['sum'] * tick / mine['calls']:.0f} ns; outside {worst} of {few}")
    return worst


exclusive, outside = [], 0
for target in run["targets"]:
    name = target["spec"].lstrip(":")
    check(not target.get("sites_untimed"), name, "is not timed")
    outside += compare(name, target["spans"], own["functions"][name])
    exclusive.append(target["spans"]["exclusive_ns"])
if None in exclusive:
    print("exclusive unknown")
    check("own" not in sys.argv[4:], "own times are unknown")
elif own["outermost"]:
    seen, true = sum(exclusive), own["outermost"] * tick
    print(f"exclusive {seen / true:.4f}")
    if "own" in sys.argv[4:]:
        check(true * 0.9 < seen < true * 1.06 + outside * PREEMPTED_NS, "own", round(true), "but", seen)
print("\n".join(wrong))
sys.exit(bool(wrong))
