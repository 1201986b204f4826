#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# trace -o, killed in the middle: the tracer, the command line, both. The program goes on, and the
# file is readable up to there.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
need python3

[ -x "$V/torture" ] || skip 'there is no C++ compiler'
start torture "$V/torture" -d 1000000 -t 2 plain
victim=$pid
snapshot "$victim"

stacks=()
readable() { # WHAT: whole lines, and calls in them
	more "$1: calls" "$(python3 - "$T/calls.jsonl" <<'P'
import json, sys
n = 0
for line in open(sys.argv[1]):
    if not line.endswith("\n"):
        break
    n += json.loads(line)["phase"] == "X"
print(n)
P
	)" 500
}

for who in tracer command both tracer both; do
	rm -f "$T/calls.jsonl"
	sb_start trace -p "$victim" :t_leaf :t_outer -o "$T/calls.jsonl" "${stacks[@]}"
	wait_for 10 grep -qs '"phase":"X"' "$T/calls.jsonl" || fail "$who: nothing is recorded"
	sleep 0.3
	tracer=$(sed -n 's/^TracerPid:\t//p' "/proc/$victim/status")
	more "$who: the tracer" "$tracer" 0
	case $who in
	tracer) kill -KILL "$tracer" ;;
	command) kill -KILL "$sb_pid" ;;
	both) kill -KILL "$sb_pid" "$tracer" ;;
	esac
	sb_wait
	await_untraced "$victim"
	readable "$who"
	[ "$who" = both ] && sb recover -p "$victim"
	wait_for 10 unchanged "$victim" || fail "$who: the program has changed"
	[ "$who" = both ] && stacks=(--stacks --every 5)
done
grep -q '"stack":\["torture:' "$T/calls.jsonl" || fail 'no stack is in the file'
let_go "$victim"
finish torture "$victim"
