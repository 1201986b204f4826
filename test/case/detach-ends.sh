#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGINT, SIGTERM, SIGHUP and --for all end in the same clean detach and status 0.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -t 2
snapshot "$pid" -t
for signal in INT TERM HUP; do
	rm -f "$T/run.json"
	attach "$pid" :victim_work 2us
	sleep 0.1
	sb_stop $signal
	ended 0 "SIG$signal"
	unchanged "$pid" -t
	more "hits before SIG$signal" "$(j targets.0.hits)" 0
done
sb -p "$pid" :victim_work 2us --for 200ms --json "$T/run.json"
ended 0 --for
unchanged "$pid" -t
finish calls "$pid"
