#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A place that cannot be written is found before the target is touched.
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls"
snapshot "$pid"
for option in --json --jsonl; do
	refuses 1 'nowhere' -p "$pid" :victim_work 1us --for 2s $option "$T/nowhere/run.json"
	! grep -q injected "$T/sb.err" || fail "$option: the target was hooked first"
done
for option in --json --csv --html --plot --events; do
	refuses 1 'nowhere' sweep -q -p "$pid" :victim_work --progress :victim_work --time 2s \
		$option "$T/nowhere/run.svg"
done
unchanged "$pid"
# A full disk is said aloud, and the detach is clean all the same.
sb -p "$pid" :victim_work 1us --for 100ms --json /dev/full
[ "$rc" -ne 0 ] || fail 'a full disk passed for success'
unchanged "$pid"
finish calls "$pid"
