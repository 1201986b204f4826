#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A .pftrace is what Perfetto's own definitions say: every packet parses, nothing in it is unknown but
# our own fields, and its slices are the calls, nested as they were.
# beside others
# limit: 120 s
. "$SRC/test/lib.sh"

perfetto=${SBINJECT_PERFETTO:-$HOME/.cache/sbinject/perfetto}/bin/python3
[ -x "$perfetto" ] || perfetto=python3
"$perfetto" -c 'import perfetto.protos.perfetto.trace.perfetto_trace_pb2' 2>/dev/null ||
	skip "no Python package perfetto (scripts/perfetto.sh installs it)"

"$perfetto" - >"$T/in.jsonl" <<'END' || fail 'no trace'
import json, random

random.seed(7)
print(json.dumps({"event_id": 0, "ts": 0, "type": "trace", "name": "sbinject", "phase": "M", "pid": 0, "tid": 0,
                  "args": {"version": "1", "command": "c", "begin_ns": 10**15, "begin_unix_ns": 10**18}}))
names = ["f", "g\n", "\uefff\uef9b", "\x9b31m", "x" * 4000, 'q"\\']
for tid in (5, 6, 0):
    stack, now, serial = [], 0, 0
    for _ in range(2000):
        now += random.choice((1, 7, 900))
        if len(stack) < 9 and (not stack or random.random() < 0.5):
            stack.append((now, random.choice(names), random.choice(("native", "python", "delay"))))
            continue
        start, name, kind = stack.pop()
        serial += 1
        args = {"thread": tid + 1, "module": "m"}
        if serial % 3 == 0:
            args["stack"] = ["m:%s+0x1" % random.choice(names), "libc.so.6:main+0x%x" % (serial % 50)]
            if serial % 2:
                args["stack_end"] = "truncated"
        print(json.dumps({"event_id": serial, "ts": start / 1e9, "type": kind, "name": name, "phase": "X", "pid": 4,
                          "tid": tid, "dur_us": (now - start) / 1e3, "args": args}))
END
sb report "$T/in.jsonl" -o "$T/out.pftrace"
ended 0
"$perfetto" - "$T/in.jsonl" "$T/out.pftrace" <<'END' >"$T/compared" || fail "$(cat "$T/compared")"
import json
import sys
from collections import Counter

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

want = Counter()
for line in open(sys.argv[1]):
    event = json.loads(line)
    if event["phase"] == "X":
        name = ("delay: " if event["type"] == "delay" else "") + event["name"]
        want[event["tid"], round(event["ts"] * 1e9), round(event["dur_us"] * 1e3), name, event["type"],
             tuple(event["args"].get("stack", ())), event["args"].get("stack_end", "")] += 1

trace = Trace()
data = open(sys.argv[2], "rb").read()
assert trace.ParseFromString(data) == len(data)
names, categories, texts, tids, edges, defaults = {}, {}, {}, {}, [], None
for order, packet in enumerate(trace.packet):
    assert packet.trusted_packet_sequence_id == 1
    if packet.HasField("trace_packet_defaults"):
        defaults = packet.trace_packet_defaults.timestamp_clock_id
    for clock in packet.clock_snapshot.clocks:
        assert clock.clock_id != 3 or clock.timestamp == 10**15
    for entry in packet.interned_data.event_names:
        names[entry.iid] = entry.name
    for entry in packet.interned_data.event_categories:
        categories[entry.iid] = entry.name
    for entry in packet.interned_data.debug_annotation_string_values:
        assert entry.iid not in texts
        texts[entry.iid] = entry.str.decode()
    if packet.HasField("track_descriptor"):
        tids[packet.track_descriptor.uuid] = packet.track_descriptor.thread.tid
    event = packet.track_event
    if packet.HasField("track_event") and event.type != TrackEvent.TYPE_INSTANT:
        edges.append((packet.timestamp, order, event))
assert defaults == 64

# as an importer does it: by time, then in the order of the file; an end closes the last slice
got, stacks = Counter(), {}
for ns, _, event in sorted(edges, key=lambda edge: edge[:2]):
    stack = stacks.setdefault(event.track_uuid, [])
    if event.type == TrackEvent.TYPE_SLICE_BEGIN:
        stack.append((ns, names[event.name_iid], categories[event.category_iids[0]]))
        continue
    begin, name, category = stack.pop()
    frames, end = (), ""
    for note in event.debug_annotations:
        if note.name == "stack":
            frames = tuple(texts[entry.string_value_iid] for entry in note.array_values)
        if note.name == "stack_end":
            end = note.string_value
    got[tids[event.track_uuid], begin, ns - begin, name, category, frames, end] += 1
assert 50 < len(texts) < 500, "interned once"
assert not any(stacks.values()), "slices that do not end"
print("missing", list((want - got).items())[:5], "wrong", list((got - want).items())[:5])
sys.exit(want != got)
END
