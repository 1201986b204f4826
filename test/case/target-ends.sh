#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The target may end or be killed while it is hooked: the figures stay.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -n 30000 -g "$T/gate"
attach "$pid" :victim_work 1us
touch "$T/gate"
sb_wait
ended 0
wait "$pid" || fail 'the victim failed'
said calls '^self-check ok$' || fail 'the victim is not content'
same hits "$(j targets.0.hits)" 30000

start killed "$V/calls"
attach "$pid" :victim_work 1us
sleep 0.2
kill -KILL "$pid"
sb_wait
ended 0
more 'hits of a killed one' "$(j targets.0.hits)" 1000
