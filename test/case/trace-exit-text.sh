#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# arg=NAME:N@exit: a string that a function has written is recorded as its call ends: where the call
# has succeeded, and only from the stack of its thread; elsewhere it is unknown, and nothing is read.
# All formats keep it.
# beside others
# quick
. "$SRC/test/lib.sh"
need python3

sb trace :out_zero arg=id:1:i32 arg=path:2@exit :out_length arg=id:1:i32 arg=path:2@exit:str ret \
	:out_pointer arg=id:1:i32 ret=ptr arg=path:2@exit -o "$T/calls.jsonl" --json "$T/run.json" -- "$V/outtext"
ended 0
grep -q '^self-check ok$' "$T/sb.out" || fail 'no self-check'
cat >"$T/check.py" <<'P'
import json, sys
truth = dict(line.rstrip("\n").split(" ", 2)[1:] for line in open(sys.argv[1], encoding="utf-8") if line.startswith("text "))
calls = known = 0
for line in open(sys.argv[2], encoding="utf-8"):
    event = json.loads(line)
    if event["phase"] != "X":
        continue
    calls += 1
    text = event["args"]["path"]
    known += text is not None
    assert text == truth.get(str(event["args"]["id"])), (event["args"], truth.get(str(event["args"]["id"])))
print(calls, known)
P
checked() { # FILE
	python3 "$T/check.py" "$T/text" "$1" >"$T/compared" 2>&1 || fail "$1: $(tail -1 "$T/compared")"
	same "$1: calls, known texts" "$(cat "$T/compared")" "$((3 * 50 + 1)) $((3 * 43))"
}
cp "$T/sb.out" "$T/text"
checked "$T/calls.jsonl"
for format in pftrace json; do
	sb report "$T/calls.jsonl" -o "$T/calls.$format"
	ended 0 "to $format"
	sb report "$T/calls.$format" -o "$T/again.jsonl"
	ended 0 "from $format"
	checked "$T/again.jsonl"
done
sb report "$T/calls.pftrace" --slowest 500
ended 0
grep -q 'path=/proc/self/fd/01' "$T/sb.out" || fail 'no text in the report'
sb report "$T/calls.pftrace" --slowest 500 --json "$T/report.json"
python3 - "$T/report.json" <<'P' || fail 'texts in the report as JSON'
import json, sys
slowest = json.load(open(sys.argv[1]))["slowest"]
assert sum(call["values"]["path"] is not None for call in slowest) == 3 * 43, slowest[:3]
P
sb list :out_zero arg=path:2@exit -- "$V/outtext"

refuses 125 'is of type str' trace :out_zero arg=path:2@exit:i64 -- "$V/outtext"
refuses 125 'only what stands behind @exit' trace :out_zero arg=path:2:str -- "$V/outtext"
refuses 125 'only the first 6' trace :out_zero arg=path:7@exit -- "$V/outtext"
refuses 125 'does not fit' trace :out_zero arg=path:2@exit arg=other:3@exit -- "$V/outtext"
refuses 125 'sums a string' trace :out_zero arg=path:2@exit sum=path -- "$V/outtext"
