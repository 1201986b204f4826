#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# hits == calls, exactly: 4 threads, attached before the first call.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -t 4 -n 250000 -g "$T/gate" -w
snapshot "$pid"
attach "$pid" :victim_work 0
touch "$T/gate"
wait_for 30 said calls '^called$' || fail 'the calls were not made'
sb_stop INT
ended 0
unchanged "$pid"
finish calls "$pid"
same hits "$(j targets.0.hits)" "$(calls calls victim_work)"
same outcome "$(j targets.0.outcome)" counted
same delayed "$(j targets.0.delayed)" 0
same injected "$(j targets.0.injected_ns)" 0
same mechanism "$(j targets.0.sites.0.mechanism)" jump
