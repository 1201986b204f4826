#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --start-on TARGET: the first hit may be that of a child without a tracer.
# quick
# beside others
. "$SRC/test/lib.sh"

start unseen "$V/unseen" "$V/victim-lib.so" "$T/gate"
attach "$pid" :unseen_work 0 --start-on libc.so.6:dlopen --no-follow # only children call dlopen()
await_untraced "$pid"
touch "$T/gate"
wait_for 15 said unseen '^forked$' || fail 'its children do not get on'
sleep 0.3
finish unseen "$pid"
sb_wait
ended 0
more hits "$(j targets.0.hits)" 10
