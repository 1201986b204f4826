#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# every=N delays each Nth hit, by as much as asked, and counts all: at the entry, at exits and at both,
# and while N changes from one hit to the next.
# quick
# beside others
. "$SRC/test/lib.sh"
need python3

start calls "$V/calls" -t 2 -n 100000 -g "$T/gate" -w
attach "$pid" :victim_work 1us every=10
touch "$T/gate"
wait_for 30 said calls '^called$' || fail 'the calls were not made'
sb_stop
ended 0
finish calls "$pid"
same hits "$(j targets.0.hits)" 200000
same every "$(j targets.0.every)" 10
slots=$(($(nproc) + 2)) # each slot counts for itself
more delayed "$(j targets.0.delayed)" $((20000 - slots - 1))
less delayed "$(j targets.0.delayed)" $((20000 + slots + 1))
delayed=$(j targets.0.delayed)
more injected "$(j targets.0.injected_ns)" $((delayed * 950))
less injected "$(j targets.0.injected_ns)" $((delayed * 1050))

for at in exit both; do
	sb :exit_pointer 2us every=10 at=$at --json "$T/run.json" -- "$V/exits" 2000
	ended 0 $at
	grep -q '^self-check ok$' sb.out || fail "at=$at: $(cat sb.out)"
	hits=$(j targets.0.hits) delayed=$(j targets.0.delayed)
	same "at=$at: hits" "$hits" "$(calls sb exit_pointer)"
	more "at=$at: delayed" "$delayed" $((hits / 10 - slots))
	less "at=$at: delayed" "$delayed" $((hits / 10 + slots))
	more "at=$at: injected" "$(j targets.0.injected_ns)" $((delayed * 1900))
	less "at=$at: injected" "$(j targets.0.injected_ns)" $((delayed * 2100))
done

# A hit that begins with one N and is judged by another one knows when it began.
start calls "$V/calls" -t 2 -n 1000000 -g "$T/gate2" -w
attach "$pid" :victim_work 200ns every=10
await_session
python3 - "$SBINJECT_RUNTIME_DIR"/*.sock "$T/gate2" "$T/calls.out" <<'P' || fail 'no change of every='
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
answers = s.makefile()
changes = 0
open(sys.argv[2], "w").close()
while changes < 400 and "called" not in open(sys.argv[3]).read():
    changes += 1
    s.sendall(json.dumps({"op": "update", "target": ":victim_work", "every": 1 if changes % 2 else 10}).encode() + b"\n")
    assert json.loads(answers.readline())["ok"]
print(changes, "changes")
assert changes > 20
P
wait_for 30 said calls '^called$' || fail 'the calls were not made'
sb_stop
ended 0
finish calls "$pid"
same 'hits while every= changes' "$(j targets.0.hits)" 2000000
less 'overrun while every= changes' "$(j targets.0.overrun_ns)" 60000000000
