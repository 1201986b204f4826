#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The target forks in the middle of what is being made in it: its child has a part of that, and what
# its parent has by the time that we hear of it is not what the child has. It is hooked all the same,
# counts each call, is let go, and nothing of ours is left in it.
# limit: 240 s
. "$SRC/test/fault/walk.bash"

child_of() { sed -n 's/^child //p' "$T/midfork.out"; }

child_runs() {
	wait_for 10 has_forked || fail "$where: it has not forked"
	child=$(child_of)
	pids+=("$child")
	sleep "$settle" # an agent in the child has a second to come into force
	touch "$T/go"
	wait_for 10 said midfork '^child ready$' || fail "$where: the child does not run"
}

# In the place of walk.bash's: 0 reached and well, 3 never reached, 1 not well
one() {
	local where="$1:$2=$3" pids=() child

	at_end cleanup
	rm -f "$T/gate" "$T/go" "$T/run.json"
	start midfork "${victim[@]}" "$T/gate" "$T/go"
	export SBINJECT_FAULT_GATE=$T/gate SBINJECT_FAULT=$where
	attach_told "$pid" "$target" 1us
	[ $when = detach ] || [ -e "$T/gate" ] || exit 3
	[ $when = detach ] || child_runs
	sb_stop
	[ "$rc" -eq 0 ] || fail "$where: status $rc"
	[ -e "$T/gate" ] || exit 3
	[ $when = attach ] || child_runs
	[ $when = detach ] || [ "$(j targets.0.hits)" -eq 1000 ] ||
		fail "$where: $(j targets.0.hits) hits of 1000"
	for pid in "$pid" "$child"; do
		kill -0 "$pid" 2>/dev/null || fail "$where: process $pid died"
		(let_go "$pid") || fail "$where: something stays in process $pid"
		! find "/proc/$pid/fd" -lname '/memfd:sbinject*' | grep -q . ||
			fail "$where: a file of ours stays open in process $pid"
	done
	finish midfork "${pids[0]}"
	echo "$where: its child is well"
	exit 0
}

has_forked() { [ -n "$(child_of)" ]; }

MOST=4 LEAST=3

# What is made: the page, a region of stubs, hooks in the text, a mailbox for an agent. What is undone.
making='remote-begin setup-files setup-map setup-grow setup-front setup-record register region-header plant-moved plant-written plant-page call-entered call-left'
undoing='restore-text restore-page restore-unmap release'
victim=("$V/midfork") target=:midfork_fn settle=0.2
walk_when() { # WHEN POINT...: each has passages of its own
	when=$1 POINTS="${*:2}" passes=() counted=()
	walk fork-target
}
# shellcheck disable=SC2086 # words
walk_both() { # MAKING UNDOING
	walk_when attach $1
	walk_when detach $2
}
walk_both "$making" "$undoing"
if (need_python) >/dev/null; then
	need_python
	victim=("${python[-1]}" "$SRC/test/victim/python/midfork.py") target=py:__main__:step settle=0.7
	walk_both 'remote-begin setup-map setup-grow setup-record register mailbox-map async async-set async-end' \
		"async async-set async-end remote-begin $undoing"
fi
