#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The target forks in the middle of what is being made in it: its child has a part of that, and what
# its parent has by the time that we hear of it is not what the child has. It is hooked all the same,
# counts each call, is let go, and nothing of ours is left in it.
# limit: 240 s
. "$SRC/test/fault/walk.bash"

child_of() { sed -n 's/^child //p' "$T/midfork.out"; }

# In the place of walk.bash's: 0 reached and well, 3 never reached, 1 not well
one() {
	local where="$1:$2=$3" pids=() child

	trap cleanup EXIT
	rm -f "$T/gate" "$T/go" "$T/run.json"
	start midfork "${victim[@]}" "$T/gate" "$T/go"
	export SBINJECT_FAULT_GATE=$T/gate SBINJECT_FAULT=$where
	attach_told "$pid" "$target" 1us
	[ -e "$T/gate" ] || exit 3
	wait_for 10 child_of_is_there || fail "$where: it has not forked"
	child=$(child_of)
	pids+=("$child")
	sleep "$settle" # an agent in the child has a second to come into force
	touch "$T/go"
	wait_for 10 said midfork '^child ready$' || fail "$where: the child does not run"
	sb_stop
	[ "$rc" -eq 0 ] || fail "$where: status $rc"
	[ "$(j targets.0.hits)" -eq 1000 ] || fail "$where: $(j targets.0.hits) hits of 1000"
	for pid in "$pid" "$child"; do
		kill -0 "$pid" 2>/dev/null || fail "$where: process $pid died"
		(let_go "$pid") || fail "$where: something stays in process $pid"
	done
	finish midfork "${pids[0]}"
	echo "$where: 1000 hits"
	exit 0
}

child_of_is_there() { [ -n "$(child_of)" ]; }

MOST=4

# What is made: the page, a region of stubs, hooks in the text, a room for an agent.
POINTS='borrow setup-map register region-header plant-moved plant-written plant-page call-entered call-left'
victim=("$V/midfork") target=:midfork_fn settle=0.2
walk fork-target
if (need_python) >/dev/null; then
	need_python
	POINTS='borrow setup-map register room-map room-file lend lend-set recall'
	victim=("${python[-1]}" "$SRC/test/victim/python/midfork.py") target=py:__main__:step settle=0.7
	walk fork-target
fi
