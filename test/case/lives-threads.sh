#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A leader that has ended, or ends while hooked; vfork parents that wait in the kernel; exec by a
# thread that is not the leader; threads and children by the hundred.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"

# round MODE: attach, effect, detach
round() {
	sb -p "$pid" :lives_fn 1us --for 120ms --json "$T/run.json" --no-children
	ended 0 "$1"
	hits=$((hits + $(j targets.0.hits)))
	! grep -q 'warning' "$T/sb.err" || fail "$1: $(cat "$T/sb.err")"
}

hit_after() { [ "$("$CTL" list | sed -n 's/.* hits=\([0-9]*\).*/\1/p')" -gt 500 ]; }
is_let_go() { (let_go "$pid"); }

for mode in leader vfork exec burst children; do
	start "$mode" "$V/lives" "$mode"
	case $mode in leader | vfork) snapshot "$pid" ;; esac
	hits=0
	for _ in 1 2 3 4 5 6; do
		round "$mode"
	done
	more "hits of $mode" $hits 6
	case $mode in
	leader | vfork) unchanged "$pid" ;;
	exec) wait_for 5 is_let_go || let_go "$pid" ;; # an exec is no moment to look
	*) let_go "$pid" ;;
	esac
	finish "$mode" "$pid"
done

for follow in '' --no-follow; do
	start leaves "$V/lives" leaves
	# shellcheck disable=SC2086 # no mode, no word
	attach "$pid" :lives_fn 1us $follow
	kill -USR1 "$pid"
	wait_for 5 said leaves '^changed$' || fail 'the leader does not leave'
	wait_for 20 hit_after || fail "no hits after the leader's end"
	"$TOOL/textcheck" "$pid" >"$T/still" && fail "the hooks went with the leader $follow"
	sb_stop
	ended 0
	let_go "$pid"
	more "hits after the leader's end $follow" "$(j targets.0.hits)" 500
	finish leaves "$pid"
done
