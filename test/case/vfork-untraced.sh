#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# --no-follow: a vfork child that runs in its parent's memory, born while neither had a tracer, is held
# with it when the hooks are taken out, and moved out of them where it stands in one.
# limit: 120 s
. "$SRC/test/lib.sh"

child() { cat "/proc/$pid/task/"*/children; }
one_child() { [ "$(child | wc -w)" -eq 1 ]; }

start shares "$V/lives" shares
for ((i = 0; i < 12; i++)); do
	attach "$pid" :lives_fn 2ms --no-follow
	# The leader: a thread that waits for its vfork child can be let go only when it wakes.
	wait_for 5 grep -q '^TracerPid:	0$' "/proc/$pid/status" || fail 'it is still traced'
	sleep 0.1
	c=''
	if [ $((i % 3)) -ne 0 ]; then # as if it had to wait for a processor, in its delay
		wait_for 5 one_child || fail "round $i: no child"
		c=$(child | tr -d ' ')
		kill -STOP "$c"
	fi
	sb_stop
	ended 0 "round $i"
	[ -z "$c" ] || kill -CONT "$c"
	more "hits in round $i" "$(j targets.0.hits)" 1
	! grep -E 'stays|still hooked|left out' "$T/sb.err" || fail "round $i: $(cat "$T/sb.err")"
	sleep 0.05
	! grep -q . "$T/shares.err" || fail "round $i: $(cat "$T/shares.err")"
done
let_go "$pid"
finish shares "$pid"
