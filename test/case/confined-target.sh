#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A target under seccomp is hooked by root; who may not suspend the filter is refused before
# anything is done, and so is one that would die of the stub's reading the clock.
# beside others
# limit: 90 s
. "$SRC/test/lib.sh"

for mode in strict notsc; do
	start "$mode" "$V/confined" "$mode"
	snapshot "$pid"
	refuses 4 'TSC' --backend inject -p "$pid" :confined_fn 1us --for 150ms
	unchanged "$pid"
	finish "$mode" "$pid"
done
for mode in few memory thread nothing; do
	start "$mode" "$V/confined" "$mode"
	snapshot "$pid"
	for how in '' --no-follow; do
		# shellcheck disable=SC2086 # no mode, no word
		sb -p "$pid" :confined_fn 1us --for 150ms $how --json "$T/run.json"
		if [ "$rc" -eq 0 ]; then
			more "hits of $mode" "$(j targets.0.hits)" 20
		else
			told 'seccomp'
			[ "$mode" != nothing ] || fail 'no_new_privs alone is no reason'
		fi
	done
	unchanged "$pid"
	finish "$mode" "$pid"
done

need_root
need setpriv
for mode in few memory thread nothing; do
	start "$mode" "$V/confined" "$mode"
	snapshot "$pid"
	rc=0
	setpriv --bounding-set -sys_admin --inh-caps -sys_admin "$SB" -p "$pid" :confined_fn 1us \
		--for 100ms >"$T/sb.out" 2>"$T/sb.err" || rc=$?
	if [ "$mode" = nothing ]; then
		ended 0 "$mode"
	else
		[ "$rc" -ne 0 ] || fail "$mode: hooked without CAP_SYS_ADMIN"
		told 'seccomp'
		told 'CAP_SYS_ADMIN'
	fi
	unchanged "$pid"
	finish "$mode" "$pid"
done
