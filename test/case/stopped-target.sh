#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A target in group stop stays stopped through attach and detach, and goes on at SIGCONT.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -r
snapshot "$pid"
kill -STOP "$pid"
state() { awk '/^State/ { print $2 }' "/proc/$pid/status"; }
stopped() { [ "$(state)" = T ]; }
wait_for 5 stopped || fail 'it does not stop'
sb -p "$pid" :victim_work 1us --for 400ms --json "$T/run.json"
ended 0
same hits "$(j targets.0.hits)" 0
wait_for 2 stopped || fail "it was stopped, and now is in state $(state)"
"$TOOL/textcheck" "$pid" || fail 'the text differs'
kill -CONT "$pid"
sleep 0.8
more 'calls a second after SIGCONT' "$(rate calls)" 10000
unchanged "$pid"

attach "$pid" :victim_work 1us
kill -STOP "$pid"
sleep 0.3
printed=$(grep -c rate "$T/calls.out")
sleep 0.4
same 'lines while stopped' "$(grep -c rate "$T/calls.out")" "$printed"
kill -CONT "$pid"
sleep 0.4
more 'lines after SIGCONT' "$(grep -c rate "$T/calls.out")" "$printed"
sb_stop
ended 0
unchanged "$pid"
finish calls "$pid"
