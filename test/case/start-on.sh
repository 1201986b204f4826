#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --start-on: a file, or the first hit of a target, opens the window.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -r
snapshot "$pid"
attach "$pid" :victim_work 1ms --start-on "$T/go" --for 1s
sleep 0.8
[ -e "$T/run.json" ] && fail 'it ended before the file was there'
waiting=$(rate calls)
touch "$T/go"
sb_wait
ended 0
unchanged "$pid"
more 'calls a second while waiting' "$waiting" 50000
more hits "$(j targets.0.hits)" 50
less hits "$(j targets.0.hits)" 2500
finish calls "$pid"

start later "$V/later" "$V/victim-lib.so" 100 1 "$T/gate"
sb_start -p "$pid" libc.so.6:access 0 --start-on victim-lib.so:lib_fn --json "$T/run.json"
wait_for 10 hooked "$pid" || fail 'not hooked'
sleep 0.3
sb_stop
ended 0
same 'hits of access before lib_fn' "$(j targets.0.hits)" 0
told 'window never opened' # and not that it was never called
finish later "$pid"
