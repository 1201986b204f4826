#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 120 s
# A program whose vfork children end one after another: the control page is made in one of them, which is
# over before the page is looked at. The attach goes on by the process that lives.
. "$SRC/test/lib.sh"

start brief "$V/lives" brief
hits=0
for i in {1..40}; do
	sb -p "$pid" :lives_fn 0 --for 20ms --json "$T/run.json"
	[ $rc -eq 0 ] || fail "attach $i: status $rc"
	hits=$((hits + $(j targets.0.hits)))
	let_go "$pid"
done
more "hits of all attaches" "$hits" 1
finish brief "$pid"
