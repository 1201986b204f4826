#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program of many threads, one of which execs it anew every few milliseconds: attaching in the
# middle of an exec stops neither of the two for good, and nothing is missed of a process that has
# but a part of its new image yet.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"

start execs "$V/execs" loop "$T/gate"
hits=0
for ((i = 1; i <= $(rounds 10 20); i++)); do
	follow=(--no-follow)
	[ $((i % 2)) -ne 0 ] || follow=()
	sb -p "$pid" :execs_fn 0 --for 30ms --json "$T/run.json" ${follow[@]+"${follow[@]}"}
	[ "$rc" -ne 124 ] || fail "round $i: sbinject hangs"
	before=$(wc -l <"$T/execs.out")
	wait_for 5 eval '[ "$(wc -l <"$T/execs.out")" -gt '"$before"' ]' || fail "round $i: it execs no more"
	! grep 'backend uprobe' "$T/sb.err" || fail "round $i: it is taken for one that cannot be traced"
	[ "$rc" -ne 0 ] || hits=$((hits + $(j targets.0.hits)))
done
more hits $hits 500
for ((i = 1; i <= $(rounds 10 100); i++)); do
	sb doctor -p "$pid"
	sed '1,/^process/d' "$T/sb.out" >"$T/rows"
	more "rows of look $i" "$(wc -l <"$T/rows")" 10
	! grep -v ' yes$' "$T/rows" || fail "look $i"
done
touch "$T/gate"
sleep 0.5
let_go "$pid"
finish execs "$pid"
