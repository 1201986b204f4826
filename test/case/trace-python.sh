#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# trace -o of Python functions, beside native ones on the same clock: each call that returned is there
# once, in its thread, inside its caller; generators by stretches; exceptions; a function that calls
# itself; functions of a pattern by their own names. On each CPython.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
need_python

cat >"$T/work.py" <<'P'
import ctypes, os, threading

ROUNDS = 300
get = ctypes.CDLL(None).getenv


def leaf(x):
    get(b"HOME")
    return x + 1


def parent(x):
    return sum(leaf(x + i) for i in range(3))


def steps():
    yield 1
    yield 2


def fails():
    raise ValueError


def deep(n):
    return deep(n - 1) if n else 0


def work():
    for i in range(ROUNDS):
        parent(i)
        sum(steps())
        deep(4)
        try:
            fails()
        except ValueError:
            pass


threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads:
    t.start()
for t in threads:
    t.join()
P

check() { # PYTHON
	sb trace "py:__main__:*" libc.so.6:getenv -o "$T/calls.jsonl" --json "$T/run.json" -- "$1" "$T/work.py"
	ended 0 "$1"
	same "$1: lost" "$(j trace.lost)" 0
	python3 - "$T/calls.jsonl" <<'P' || fail "$1: the trace is not what ran"
import collections, json, sys

spans = [o for o in map(json.loads, open(sys.argv[1])) if o["phase"] == "X"]
n = collections.Counter(s["name"] for s in spans)
threads, rounds = 2, 300
few = 6  # of a function: the first calls, before the agent watches it (and before 3.12 one in each thread)
want = {"parent": 1, "leaf": 3, "steps": 3, "fails": 1, "deep": 5}
for name, each in want.items():
    assert threads * rounds * each - few <= n[name] <= threads * rounds * each, (name, n)
assert n["getenv"] >= threads * rounds * 3, n
assert {s["type"] for s in spans} == {"python", "native"}, spans[:3]
for tid in {s["tid"] for s in spans}:
    mine = [s for s in spans if s["tid"] == tid]
    leaves = [s for s in mine if s["name"] == "leaf"]
    calls = [s for s in mine if s["name"] == "getenv"]
    order = "".join({"parent": "P", "leaf": "l"}.get(s["name"], "") for s in
                    sorted(mine, key=lambda s: s["ts"]))
    # A call has the three that it makes behind it; of the first ones some are missed.
    assert not leaves or order.count("Plll") >= rounds - few, order[:60]
    assert not leaves or len(calls) == rounds * 3, len(calls)
P
}

for p in "${python[@]}"; do
	check "$p"
done
