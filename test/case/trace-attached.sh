#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# trace -o of a running program that leaves its calls in every way: each call is recorded or counted,
# the sums agree with the trace, and the program is as before. Also where the buffer is too small,
# with filters, and where the file cannot be written.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"

[ -x "$V/torture" ] || skip 'there is no C++ compiler'

targets=(:t_leaf :t_jump :t_pass :t_node)
adds_up() { # WHAT
	local sum=0
	for i in "${!targets[@]}"; do
		sum=$((sum + $(j "targets.$i.spans.calls")))
	done
	same "$1: calls" "$sum" "$(($(j trace.calls) + $(j trace.lost) + $(j trace.unseen) + $(j trace.filtered)))"
	same "$1: lines" "$(grep -c '"phase":"X"' "$T/calls.jsonl")" \
		"$(($(j trace.calls) + $(j trace.delays)))"
	same "$1: the last line" "$(tail -n 1 "$T/calls.jsonl" | grep -c '"type":"end"')" 1
}

start torture "$V/torture" -d 1000000 -t 4 plain jump throw recurse
victim=$pid
snapshot "$victim"
record() { # WHAT [OPTION...]
	sb trace -p "$victim" "${targets[@]}" -o "$T/calls.jsonl" --json "$T/run.json" --for 300ms "${@:2}"
	ended 0 "$1"
	adds_up "$1"
	more "$1: recorded" "$(j trace.calls)" 100
	unchanged "$victim"
}

record all
record again
record 'a small buffer' --ring 256K
record 'few a second' --limit-rate 1000
less 'few a second' "$(j trace.calls)" 20000
record 'long ones' --min 2us
more 'long ones: left out' "$(j trace.filtered)" 1000
record 'each seventh' --every 7
more 'each seventh: left out' "$(j trace.filtered)" "$(($(j trace.calls) * 5))"

# With their stacks, which are counted one by one, too: also where they are too many by far.
with_stacks() { # WHAT OPTION...
	record "$@"
	same "$1: stacks" "$(($(j trace.stacks) + $(j trace.stacks_lost)))" "$(j trace.calls)"
	same "$1: in the file" "$(grep -c '"stack":\[' "$T/calls.jsonl")" "$(j trace.stacks)"
	more "$1: there are some" "$(j trace.stacks)" 100
}
with_stacks 'stacks of each seventh' --every 7 --stacks
with_stacks 'large stacks of long ones' --min 1us --stack-size 64K
with_stacks 'stacks in a small buffer' --every 2 --ring 256K --stacks

# The delays are slices of their own, each as long as it was.
sb trace -p "$victim" :t_leaf 20us -o "$T/calls.jsonl" --json "$T/run.json" --for 300ms
ended 0 delays
more 'delays' "$(j trace.delays)" 100
# The detach cuts the delays that are in progress short; they are in the sums only.
more 'delays: each one' "$(($(j trace.delays) + 6))" "$(j targets.0.delayed)"
python3 - "$T/calls.jsonl" <<'P' || fail 'a delay has another length'
import json, sys
took = sorted(o["dur_us"] for o in map(json.loads, open(sys.argv[1])) if o["type"] == "delay")
assert 19.9 <= took[len(took) // 10] and took[len(took) // 2] <= 20.2, took[::len(took) // 10]
P

# What was there stays until the hooks are in force.
echo kept >"$T/kept.jsonl"
sb trace -p "$victim" :no_such_function -o "$T/kept.jsonl" --for 100ms
[ "$rc" -ne 0 ] || fail 'no such function: exit status 0'
same 'an attach that fails' "$(cat "$T/kept.jsonl")" kept

# A full disk: the program and the session go on, and the end says it.
if [ -c /dev/full ]; then
	sb trace -p "$victim" :t_leaf -o /dev/full --format jsonl --for 300ms
	[ "$rc" -ne 0 ] || fail 'a full disk: exit status 0'
	told 'no space left'
	unchanged "$victim"
fi
let_go "$victim"
finish torture "$victim"
