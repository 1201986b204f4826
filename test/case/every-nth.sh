#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# every=N delays each Nth hit and counts all.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -t 2 -n 100000 -g "$T/gate" -w
attach "$pid" :victim_work 1us every=10
touch "$T/gate"
wait_for 30 said calls '^called$' || fail 'the calls were not made'
sb_stop
ended 0
finish calls "$pid"
same hits "$(j targets.0.hits)" 200000
same every "$(j targets.0.every)" 10
slots=$(($(nproc) + 2)) # each slot counts for itself
more delayed "$(j targets.0.delayed)" $((20000 - slots - 1))
less delayed "$(j targets.0.delayed)" $((20000 + slots + 1))
