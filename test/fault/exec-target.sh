#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The target execs at every step, by its leader or by another thread: the new program is let go, and
# nothing of ours is in it.
# limit: 600 s
. "$SRC/test/fault/walk.bash"

# In the place of walk.bash's: 0 reached and well, 3 never reached, 1 not well
one() {
	local where="$1:$2=$3" pids=() who=follower

	at_end cleanup
	rm -f "$T/gate"
	[ "$2" -ne 2 ] || who=leader
	start execs "$V/execs" $who "$T/gate"
	export SBINJECT_FAULT_GATE=$T/gate
	run "$where" -p "$pid" :execs_fn 2us --for 150ms --json "$T/run.json"
	[ "$rc" -ne 124 ] || fail "$where: sbinject hangs"
	kill -0 "$pid" 2>/dev/null || fail "$where: the target died"
	[ "$rc" -eq 0 ] || fail "$where: status $rc"
	[ -e "$T/gate" ] || exit 3
	wait_for 10 again || fail "$where: the new program does not run"
	wait_for 10 released || fail "$where: the target stays traced"
	wait_for 10 clean || fail "$where: the target stays hooked"
	(let_go "$pid") || fail "$where: something stays in the target"
	finish execs "$pid"
	echo "$where by the $who: status $rc"
	exit 0
}

again() { [ "$(grep -c '^ready$' "$T/execs.out")" -eq 2 ]; }

MOST=4
walk exec-target
