#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A second sbinject on one target is refused and changes nothing; then the first lets go.
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls"
snapshot "$pid"
for mode in '' --no-follow; do
	# shellcheck disable=SC2086 # no mode, no word
	attach "$pid" :victim_work 1us $mode
	second=0
	timeout 20 "$SB" -p "$pid" :victim_other 1us --for 1s >/dev/null 2>"$T/second.err" || second=$?
	[ $second -ne 0 ] || fail "a second one was let in $mode"
	grep -qiE 'traced|hooked' "$T/second.err" || fail "no reason: $(cat "$T/second.err")"
	hooked "$pid" || fail 'the second one unhooked the target'
	sb_stop
	ended 0
	unchanged "$pid"
done
finish calls "$pid"
