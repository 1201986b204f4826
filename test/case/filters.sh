#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# pid= and thread= hold for one process, one thread, and no other.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -t 3 -n 2000 -g "$T/gate" -w
attach "$pid" :victim_work 0 thread=work-1
sleep 0.3
touch "$T/gate"
wait_for 20 said calls '^called$' || fail 'the calls were not made'
sb_stop
ended 0
finish calls "$pid"
same 'hits of one thread of three' "$(j targets.0.hits)" 2000

start one "$V/calls" -n 3000 -g "$T/gate2" -w
one=$pid
start two "$V/calls" -n 3000 -g "$T/gate2" -w
two=$pid
sb_start -p "$one,$two" :victim_work 0 "pid=$two" --json "$T/run.json"
wait_for 10 hooked "$two" || fail 'not hooked'
sleep 0.3
touch "$T/gate2"
wait_for 20 said one '^called$' && wait_for 20 said two '^called$' || fail 'the calls were not made'
sb_stop
ended 0
finish one "$one"
finish two "$two"
same 'hits of one process of two' "$(j targets.0.hits)" 3000
