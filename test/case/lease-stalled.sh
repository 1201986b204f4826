#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# sbinject is held up while a program loads libraries. Where only its session is, leases are renewed all
# the same: no delay is left out, and a library that is loaded waits for its hooks. Where all of it is,
# programs run on after the lease: what they did unseen is counted and told, the exit status is not 0, and
# what was missed is hooked late.
. "$SRC/test/lib.sh"

tracer() { awk '/^TracerPid/ { print $2 }' "/proc/$1/status"; }

begin() {
	start later "$V/later" "$V/victim-lib.so" 100000 0
	rm -f "$SBINJECT_RUNTIME_DIR"/*.sock
	attach "$pid" victim-lib.so:lib_fn 1us
	await_session
	tracer=$(tracer "$pid")
	more 'the tracer' "$tracer" 0
}

begin
sleep 0.3
"$TOOL/hold" "$tracer" 2500 || fail 'the session cannot be held up'
sleep 0.3
sb_stop
ended 0
same 'hits that were not delayed' "$(j lease_lapsed_hits)" 0
same 'doorbells that gave up' "$(j doorbells_lost)" 0
more 'seconds of the stall' "$(j stalled_s | cut -d. -f1)" 1
same outcome "$(j targets.0.outcome)" delayed
finish later "$pid"

begin
sleep 0.3
kill -STOP "$tracer"
sleep 2.5
kill -CONT "$tracer"
sleep 0.3
hits() { "$CTL" list | sed -n 's/.*hits=\([0-9]*\).*/\1/p'; }
before=$(hits)
sleep 0.3
more 'hits after what was missed is hooked' "$(hits)" "$before"
sb_stop
ended 1
more 'doorbells that gave up' "$(j doorbells_lost)" 0
more 'seconds of the stall' "$(j stalled_s | cut -d. -f1)" 1
told incomplete
told 'could not go on'
finish later "$pid"
