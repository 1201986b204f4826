#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --no-follow: hooked and untraced; a debugger may attach; detach comes back clean.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -t 2
target=$pid
snapshot "$target" -t
attach "$target" :victim_work 2us --no-follow
await_untraced "$target"
start tracer "$V/odd" tracer "$target"
sleep 0.3
finish tracer "$pid"
sb_stop
ended 0
unchanged "$target" -t
more hits "$(j targets.0.hits)" 1000
finish calls "$target"
