#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A pending target is hooked when its library appears: the constructor counts.
# quick
# beside others
. "$SRC/test/lib.sh"

start later "$V/later" "$V/victim-lib.so" 500 1 "$T/gate"
snapshot "$pid"
sb_start -p "$pid" victim-lib.so:lib_fn 1us --json "$T/run.json"
wait_for 10 hooked "$pid" || fail 'nothing is hooked: the loader should be'
sleep 0.3
touch "$T/gate"
wait_for 20 said later '^called$' || fail 'the library was not loaded'
sb_stop INT
ended 0
"$TOOL/textcheck" "$pid" || fail 'the text differs'
finish later "$pid"
same hits "$(j targets.0.hits)" "$(calls later lib_fn)"
same outcome "$(j targets.0.outcome)" delayed
