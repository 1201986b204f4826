#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# trace --stacks of a program that leaves its calls in every way, with signals on stacks of their own,
# fibers, forks and threads that end: no call has a caller that it cannot have, each list that ends
# early says why, and what has no stack is counted.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
need python3

[ -x "$V/torture" ] || skip 'there is no C++ compiler'

seed=${TORTURE_SEED:-$RANDOM}
targets=()
for name in leaf outer node deep jump thrower pass tail yield hand torn fork spawn exit; do
	targets+=(":t_$name")
done

torture() { # HZ MODE...
	seed=$((seed + 1))
	sb trace "${targets[@]}" --every 5 --stacks -o "$T/calls.jsonl" --json "$T/run.json" -- \
		"$V/torture" -s "$seed" -d "${TORTURE_MS:-400}" -r "$1" -l 6000 "${@:2}"
	ended 0 "$*"
	grep -q '^self-check ok$' "$T/sb.out" || fail "$*: $(cat "$T/sb.out")"
	same "seed $seed: $*: stacks" "$(($(j trace.stacks) + $(j trace.stacks_lost)))" "$(j trace.calls)"
	more "seed $seed: $*: there are some" "$(j trace.stacks)" 20
	python3 - "$T/calls.jsonl" <<'END' >"$T/compared" || fail "seed $seed: $*: $(cat "$T/compared")"
import json, re, sys

callers = {
    "t_leaf": "t_outer do_plain do_signal t_pass t_pass.cold do_tail t_tail do_throw fiber_main t_spawn t_fork t_exit do_exit",
    "t_outer": "do_plain", "t_node": "t_node do_recurse", "t_deep": "t_deep do_deep",
    "t_jump": "t_jump do_jump", "t_thrower": "t_pass do_throw", "t_pass": "t_pass do_throw", "t_tail": "do_tail",
    "t_yield": "t_yield fiber_main", "t_hand": "t_hand on_signal", "t_torn": "t_torn do_torn on_torn",
    "t_fork": "do_fork", "t_spawn": "do_spawn", "t_exit": "do_exit",
}
for line in open(sys.argv[1]):
    event = json.loads(line)
    stack, end = event["args"].get("stack"), event["args"].get("stack_end")
    if event["phase"] != "X" or stack is None:
        continue
    if not stack:
        sys.exit(print("no caller", line) or 1)
    caller = re.fullmatch(r"torture:(\S+)\+0x[0-9a-f]+", stack[0])
    if not caller or caller[1] not in callers[event["name"]].split():
        sys.exit(print("a wrong caller", line) or 1)
    if not end and not re.match(r"(libc\S*:clone3?|torture:_start|libc\S*\+0x|ld-musl)", stack[-1]):
        sys.exit(print("ends early without a reason", line) or 1)
END
}

torture 0 plain recurse tail
torture 2000 plain signal recurse
torture 4000 torn plain
torture 1000 jump throw tail fiber fork spawn exit signal recurse plain
torture 0 deep
