#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A trap while signals are blocked must not reset the target's signal state.
. "$SRC/test/lib.sh"

start signals "$V/signals"
snapshot "$pid" -t
attach "$pid" :signal_fn 20us libc.so.6:nanosleep 0 --mechanism int3
sleep 1
sb_stop
ended 0
unchanged "$pid" -t
finish signals "$pid"
more hits "$(j targets.0.hits)" 50
