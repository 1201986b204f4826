# SPDX-License-Identifier: MIT
"""pycallers.py TRACE.jsonl TRUTH [SOME]: has each recorded call the Python frames that the program has
written itself, the innermost first, and native ones around them? And each call of a Python function
those of its callers? Prints the number of native calls, of ways, of stacks that are not complete, and
of calls of Python functions; 1 and the difference if one is wrong. SOME: stacks may be incomplete."""
import collections
import json
import re
import sys

LONGEST = 512
truth = {}
for line in open(sys.argv[2], encoding="utf-8"):
    call = json.loads(line)
    truth[call["id"]] = call


def short(text):
    cut = LONGEST if text.isascii() else LONGEST // 2
    return text if len(text) <= cut else text[:cut] + "..."


def frames_of(stack):
    """Of "py:NAME (FILE:LINE)"."""
    found = [re.fullmatch(r"py:(.*) \((.*):(\d+)\)", f) for f in stack or [] if f.startswith("py:")]
    return [[m[1], m[2], int(m[3])] for m in found]


def wanted(call):
    return [[short(f[0]), short(f[1]), f[2]] for f in truth[call]["frames"]]


seen, ways, unknown, functions = set(), collections.Counter(), 0, 0
callers = {str([w[0][0].rsplit(".")[-1], w[1:]]) for w in map(wanted, truth)}
for line in open(sys.argv[1], encoding="utf-8"):
    event = json.loads(line)
    if event["phase"] != "X":
        continue
    number, stack, end = event["args"].get("id"), event["args"].get("stack"), event["args"].get("stack_end")
    if event["type"] == "python":
        functions += 1
        if end or str([event["name"].rsplit(".")[-1], frames_of(stack)]) not in callers:
            sys.exit(print("not those of its callers", line) or 1)
        continue
    if number not in truth:
        sys.exit(print("no such call", line) or 1)
    python, want = frames_of(stack), wanted(number)
    if end and len(sys.argv) > 3:
        unknown += 1
        if python != want[:len(python)]:
            sys.exit(print(truth[number], "is", stack, end) or 1)
        continue
    if python != want:
        sys.exit(print(truth[number], "is", python, stack, end) or 1)
    if any("EvalFrameDefault" in f for f in stack):
        sys.exit(print("a frame that runs Python is there twice", line) or 1)
    if stack[0].startswith("py:") or (not end and stack[-1].startswith("py:")):
        sys.exit(print("no native frames around them", line) or 1)
    seen.add(number)
    ways[truth[number]["way"]] += 1
print(len(seen), len(ways), unknown, functions)
