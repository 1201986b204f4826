# SPDX-License-Identifier: MIT
"""stamps.py TRACE STAMPS: compares a trace (.jsonl) with the stamps of the victim of that name.

Each call of outer() in the one must be a call in the other, in the same process and thread, between
its stamps, with as many calls of inner() inside. Prints the numbers of calls and of threads.
"""
import json
import struct
import sys

SLACK = 5000  # ns: two clocks are compared, and their ratio is known better as time goes on


def read_trace(path):
    names, spans = {}, {}
    for line in open(path):
        o = json.loads(line)
        if o["phase"] == "M":
            if o["type"] == "trace":
                begin = o["args"]["begin_ns"]
            elif o["type"] == "thread":
                names[o["pid"], o["tid"]] = o["name"]
            elif o["type"] == "end":
                assert o["args"]["lost"] == 0, o
            continue
        seconds, fraction = repr_ts(line)
        start = begin + seconds * 10**9 + fraction
        spans.setdefault((o["pid"], o["tid"]), []).append(
            (start, round(o["dur_us"] * 1000), o["name"], o["type"]))
    return names, spans


def repr_ts(line):
    """The time of a line, exact: seconds and nanoseconds."""
    text = line.split('"ts":')[1].split(",")[0]
    seconds, _, fraction = text.partition(".")
    return int(seconds), int((fraction + "0" * 9)[:9])


def read_stamps(path):
    stamps = {}
    data = open(path, "rb").read()
    for pid, tid, before, after, inner, _ in struct.iter_unpack("iiQQII", data):
        stamps.setdefault((pid, tid), []).append((before, after, inner))
    return stamps


def main():
    names, spans = read_trace(sys.argv[1])
    stamps = read_stamps(sys.argv[2])
    assert set(spans) == set(stamps), (set(spans) ^ set(stamps))
    calls = 0
    for key, expected in stamps.items():
        expected.sort()
        outer = sorted(s for s in spans[key] if s[2] == "outer")
        inner = sorted(s for s in spans[key] if s[2] == "inner")
        assert len(outer) == len(expected), (key, len(outer), len(expected))
        at = 0
        for (start, dur, *_), (before, after, n) in zip(outer, expected):
            assert before - SLACK <= start and start + dur <= after + SLACK, (
                key, before - start, start + dur - after)
            for start_in, dur_in, *_ in inner[at:at + n]:
                assert before - SLACK <= start_in and start_in + dur_in <= after + SLACK, key
                assert 150 <= dur_in, dur_in
            at += n
            calls += 1 + n
        assert at == len(inner), (key, at, len(inner))
        assert names[key].startswith(("stamps", "exe")), (key, names[key])  # exe: after the exec
    print(calls, len(stamps))


main()
