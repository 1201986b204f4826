#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Attach and detach 25 times while threads come and go on the smallest stacks.
# limit: 120 s
# beside others, as live idle work
. "$SRC/test/lib.sh"

start threads "$V/threads" churn 3
hits=0
for i in {1..25}; do
	sb -p "$pid" :thread_fn 300ns --for 40ms --json "$T/run.json"
	ended 0 "round $i"
	hits=$((hits + $(j targets.0.hits)))
	let_go "$pid"
done
more hits $hits 50
finish threads "$pid"
