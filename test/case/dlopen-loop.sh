#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# A library that comes and goes: hooked each time, nothing left behind.
. "$SRC/test/lib.sh"

for mode in '' --no-follow; do
	start later "$V/later" "$V/victim-lib.so" 100 0
	# shellcheck disable=SC2086 # no mode, no word
	sb -p "$pid" victim-lib.so:lib_fn 0 --for 2s $mode --json "$T/run.json"
	ended 0 "$mode"
	same TracerPid "$(awk '/TracerPid/ { print $2 }' "/proc/$pid/status")" 0
	sleep 0.2
	finish later "$pid"
	more hits "$(j targets.0.hits)" 110
done

sb victim-lib.so:lib_fn 0 --json "$T/run.json" -- "$V/later" "$V/victim-lib.so" 100 50
ended 0
cp "$T/sb.out" "$T/later.out"
same 'hits of 50 loads' "$(j targets.0.hits)" "$(calls later lib_fn)"
