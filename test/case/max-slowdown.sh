#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --max-slowdown refuses what would take more of a thread's time, and lets the rest pass.
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
