#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# A thread whose system calls are sent back to it (PR_SET_SYSCALL_USER_DISPATCH, Wine) is not
# used for a remote call while that is so: the target is hooked at another moment, or refused, and never dies.
. "$SRC/test/lib.sh"

start itself "$V/confined" itself || skip 'no system call user dispatch'
snapshot "$pid"
hooked=0
for ((i = 0; i < 6; i++)); do
	how=$([ $((i % 2)) -eq 0 ] || echo --no-follow)
	# shellcheck disable=SC2086 # no mode, no word
	sb -p "$pid" :confined_fn 0 --for 60ms $how --json "$T/run.json"
	kill -0 "$pid" 2>/dev/null || fail "round $i: the target died"
	if [ "$rc" -eq 0 ]; then
		hooked=$((hooked + 1))
		more "hits in round $i" "$(j targets.0.hits)" 100
	else
		ended 1 "round $i"
		told 'dispatch'
	fi
done
# It lets them pass for a moment of each round, and such a moment is waited for.
more 'rounds in which it was hooked' $hooked 4
unchanged "$pid"
finish itself "$pid"
