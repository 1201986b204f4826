# SPDX-License-Identifier: MIT
"""stacks.py TRACE.jsonl TRUTH VICTIM [PARTLY]: does each recorded call of slow() have the callers that
the victim itself has written? Prints the number of calls, of whole stacks, and of ways; 1 and the
difference if one is wrong. PARTLY: the truth ends at the first caller in another file."""
import collections
import json
import os
import re
import subprocess
import sys

trace, truth_file, victim = sys.argv[1:4]
partly = len(sys.argv) > 4
functions = {}
for line in subprocess.run(["nm", "-C", victim], capture_output=True, text=True, check=True).stdout.splitlines():
    match = re.match(r"([0-9a-f]+) \w (.*)$", line)
    if match:
        name = re.sub(r"^(?!\()(?:\w+ )?(.*?)\(.*$", r"\1", match[2])
        functions.setdefault(name, set()).add(int(match[1], 16))

truth = {}
for line in open(truth_file):
    number, way, *frames = line.split()
    truth[int(number)] = way, [(os.path.basename(f), int(o, 16)) for f, o in (x.rsplit("+", 1) for x in frames)]


def agrees(frame, module, offset):
    """Is "module:function+0x1f" this place? In other files than the victim, functions are not looked up."""
    if frame.startswith("("):
        return True  # a signal's frame
    where, at = frame.rsplit("+", 1)
    name = where.split(":", 1)
    if name[0] != module:
        return False
    if len(name) == 1:
        return int(at, 16) == offset
    return module != os.path.basename(victim) or offset - int(at, 16) in functions.get(name[1], ())


def wrong(number, why, frames):
    print(number, *truth.get(number, ("?", [])), "is", frames, why)
    sys.exit(1)


seen, ways = {}, collections.Counter()
for line in open(trace):
    event = json.loads(line)
    if event["phase"] != "X":
        continue
    args = event["args"]
    number, frames, end = args["id"], args.get("stack"), args.get("stack_end")
    if number not in truth or number in seen or frames is None:
        wrong(number, "not a slow call, or twice, or without a stack", frames)
    way, wanted = truth[number]
    for frame, place in zip(frames, wanted):
        if not agrees(frame, *place):
            wrong(number, frame, frames)
    if len(frames) > len(wanted) and not partly or not frames:
        wrong(number, "too many", frames)
    if len(frames) < len(wanted) and not end:
        wrong(number, "ends too early, without a reason", frames)
    if len(frames) < len(wanted) and way not in ("alternate", "coroutine") and "short" not in sys.argv[4:]:
        wrong(number, end, frames)
    seen[number] = end is None
    ways[way] += 1
missing = set(truth) - set(seen)
print(len(seen), sum(seen.values()), len(ways), len(missing))
