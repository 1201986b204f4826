#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# sbinject does not see the children of a process without a tracer: it counts their calls all the same, and
# one that loads a library does not wait for an answer that never comes.
# quick
# beside others
. "$SRC/test/lib.sh"

start unseen "$V/unseen" "$V/victim-lib.so" "$T/gate"
snapshot "$pid"
attach "$pid" :unseen_work 1us --no-follow
await_untraced "$pid"
sleep 0.3
touch "$T/gate"
wait_for 15 said unseen '^forked$' || fail 'its children do not get on'
# All of its calls are made under the hook: the end of the program is the end of the session.
finish unseen "$pid"
sb_wait
ended 0
same hits "$(j targets.0.hits)" "$(calls unseen unseen_work)"
same delayed "$(j targets.0.delayed)" "$(calls unseen unseen_work)"
