#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --max-slowdown refuses what would take more of a thread's time, and lets the rest pass.
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -r
snapshot "$pid"
sb -p "$pid" :victim_work 1ms --max-slowdown 10% --for 1s
[ "$rc" -ne 0 ] || fail 'a slowdown of nearly everything was not refused'
told 'max-slowdown\|slow'
unchanged "$pid"
finish calls "$pid"

start slow "$V/calls" -p 5000000
sb -p "$pid" :victim_work 1us --max-slowdown 10% --for 1s --json "$T/run.json"
ended 0
more delayed "$(j targets.0.delayed)" 10
finish slow "$pid"

start hot "$V/calls"
sb -p "$pid" :victim_work 1ms --for 500ms
ended 0
told warning
finish hot "$pid"

# A function that becomes hot late is caught as soon as one that always was: what is looked at is
# the last second, not the mean since the beginning. (Each hit takes a millisecond.)
start late "$V/calls" -g "$T/gate"
sb_start -p "$pid" :victim_work 1ms --max-slowdown 200% --json "$T/run.json"
wait_for 10 hooked "$pid" || fail 'not hooked'
sleep 4
touch "$T/gate"
sb_wait
[ "$rc" -ne 0 ] || fail 'a function that became hot was not refused'
told 'its delays add'
less 'hits until it was caught' "$(j targets.0.hits)" 4500
let_go "$pid"
finish late "$pid"
