#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A sweep that ends early (Ctrl-C, the target's end, too little time) reports what is known and why it
# ended, and leaves the target as it was; the budget is kept.
# limit: 90 s
# beside idle work, two at a time
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"

start serial "$V/sweep-shapes" serial item=1000 rest=1
snapshot "$pid"
sb_start sweep -q -p "$pid" :crit --progress :item --time 40s --json "$T/sweep.json"
wait_for 20 hooked "$pid" || fail 'no hook'
sleep 3
sb_stop INT
ended 6 'after Ctrl-C'
same 'ended early' "$(sj ended_early)" true
grep -q 'ended by the user' sb.out || fail "not said why: $(cat sb.out)"
unchanged "$pid"

sb sweep -q -p "$pid" :crit --progress :item --time 300ms --json "$T/sweep.json"
ended 6 'too little time'
grep -qE -- '--time [0-9]+s would be enough' sb.out || fail "how much is not said: $(cat sb.out)"
[ "$(sj time_s | cut -d. -f1)" -lt 3 ] || fail 'the budget was not kept'
unchanged "$pid"

sb_start sweep -q -p "$pid" :crit --progress :item --time 40s --json "$T/sweep.json"
wait_for 20 hooked "$pid" || fail 'no hook'
sleep 3
kill -KILL "$pid"
sb_wait
ended 6 'after the end of the target'
grep -q 'the target ended' sb.out || fail "not said why: $(cat sb.out)"
