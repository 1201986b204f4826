#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# trace locks, and report: locks that threads take in opposite orders or in a circle are found with the
# places of both, in a program that is started and in one that runs; what is no deadlock is not, and
# where calls are missing the report names no order, and gives the reason.
# limit: 90 s
# beside others
. "$SRC/test/lib.sh"
need python3
export XDG_CONFIG_HOME="$T/none"

ROUNDS=50
first=lockorder:first_lock second=lockorder:second_lock third=lockorder:third_lock

# The JSON of the report, in j. No lock order is one of other threads or places than the victim's. The
# run itself has the same, in its JSON and below its table.
reported() {
	cp "$T/run.json" "$T/own.json"
	"$SB" report "$T/t.pftrace" --json "$T/run.json" >"$T/report.out" || fail "report of $1"
	python3 - "$T/own.json" "$T/run.json" <<'P' || fail "$1: the run and its report have other orders"
import json, sys
run, report = (json.load(open(f)) for f in sys.argv[1:])
keys = ["lock_order", "lock_order_reason", "locks"]
assert [run.get(k, "none") for k in keys] == [report.get(k, "none") for k in keys], (run, report)
P
	grep '^lock order: \|^the orders of locks ' "$T/report.out" >"$T/report.lines"
	grep '^lock order: \|^the orders of locks ' "$T/sb.err" >"$T/own.lines"
	cmp -s "$T/own.lines" "$T/report.lines" ||
		fail "$1: the run prints '$(cat "$T/own.lines")', its report '$(cat "$T/report.lines")'"
}
# Again where another test has a uprobe on the dynamic linker: libc is not seen then.
traced() { # MODE
	for _ in 1 2 3 4 5; do
		sb trace locks -o "$T/t.pftrace" --json "$T/run.json" -- "$V/lockorder" "$1" $ROUNDS
		ended 0 "$1"
		grep -q 'libraries loaded later are not seen' "$T/sb.err" || break
		sleep 1
	done
	said sb '^self-check ok$' || fail "the program: $(cat "$T/sb.out")"
	same "$1: lost" "$(j trace.lost)" 0
	same "$1: missed" "$(j targets.0.spans.missed)" 0
	reported "$1"
}
found() { # WHAT NUMBER
	same "$1: found" "$(j lock_order.#)" "$2"
}
order() { # NUMBER FIRST PLACE THEN PLACE
	local at=lock_order.0.orders.$1

	same "order $1: first" "$(j "$at.first.name")" "$2"
	same "order $1: its place" "$(j "$at.first.at" | sed 's/+0x[0-9a-f]*$//')" "$3"
	same "order $1: then" "$(j "$at.then.name")" "$4"
	same "order $1: its place" "$(j "$at.then.at" | sed 's/+0x[0-9a-f]*$//')" "$5"
}

traced opposite
found opposite 1
order 0 "$first" lockorder:forward "$second" lockorder:forward
order 1 "$second" lockorder:backward "$first" lockorder:backward
same 'times' "$(j lock_order.0.orders.0.times) $(j lock_order.0.orders.1.times)" "$ROUNDS $ROUNDS"
same 'by one thread' "$(j lock_order.0.one_thread)" false
same 'by several' "$(j lock_order.0.orders.0.several_threads)" false
[ "$(j lock_order.0.orders.0.tid)" != "$(j lock_order.0.orders.1.tid)" ] || fail 'one thread'
[ "$(j lock_order.0.orders.0.first.lock)" = "$(j lock_order.0.orders.1.then.lock)" ] || fail 'addresses'
grep -q '^lock order: .*two locks in opposite orders: a deadlock is possible$' "$T/report.out" ||
	fail "the report: $(cat "$T/report.out")"
grep -Eq "^  0x[0-9a-f]+ \($first\) at lockorder:forward\+0x[0-9a-f]+, then 0x[0-9a-f]+ \($second\) at lockorder:forward\+0x[0-9a-f]+; $ROUNDS times, thread [0-9]+ \(lockorder\)$" \
	"$T/report.out" || fail "the report: $(cat "$T/report.out")"

# Filters choose what is counted, and no set of locks has a hole by them. All formats keep the values.
"$SB" report "$T/t.pftrace" --function '*unlock' --to 1ns --json "$T/run.json" >/dev/null || fail 'filters'
found filtered 1
for format in jsonl json; do
	"$SB" report "$T/t.pftrace" -o "$T/t.$format" || fail "to $format"
	"$SB" report "$T/t.$format" --json "$T/run.json" >/dev/null || fail "from $format"
	found "$format" 1
	order 1 "$second" lockorder:backward "$first" lockorder:backward
done

traced circle
found circle 1
order 0 "$first" lockorder:forward "$second" lockorder:forward
order 1 "$second" lockorder:onward "$third" lockorder:onward
order 2 "$third" lockorder:round_again "$first" lockorder:round_again
grep -q '^lock order: .* 3 locks in a circle: a deadlock is possible$' "$T/report.out" || fail 'no circle'

for mode in same try timed reuse gate read; do
	traced $mode
	found $mode 0
	more "$mode: orders" "$(j locks.orders)" 0
	same "$mode: left out" "$(j locks.locks_odd) $(j locks.no_room)" '0 0'
	grep -q '^lock order: no two threads can wait for each other' "$T/report.out" || fail "$mode: the report"
done

traced write
found write 1
order 0 lockorder:first_rwlock lockorder:forward_write lockorder:second_rwlock lockorder:forward_write
same 'to read' "$(j lock_order.0.orders.0.then.shared) $(j lock_order.0.orders.1.first.shared)" 'false true'
grep -q 'second_rwlock) to read at lockorder:backward_read' "$T/report.out" || fail 'no reader in the report'

traced wait
found wait 1
order 0 "$first" lockorder:wait_inside "$second" lockorder:wait_inside
order 1 "$second" lockorder:wait_inside "$first" lockorder:wait_inside
same 'by one thread' "$(j lock_order.0.one_thread)" true
grep -q ', all by one thread: ' "$T/report.out" || fail 'the report of one thread'

# Who holds a lock that another thread releases is not known.
traced foreign
found foreign 0
same 'an odd one' "$(j locks.locks_odd)" 1
grep -q '^lock order: 1 lock is left out as a held one' "$T/report.out" || fail 'the report of an odd lock'

# A program that runs.
start victim "$V/lockorder" opposite
victim=$pid
snapshot "$victim"
sb trace -p "$victim" locks -o "$T/t.pftrace" --for 500ms --json "$T/run.json"
ended 0
unchanged "$victim"
reported attached
found attached 1
same 'two orders' "$(j lock_order.0.orders.#)" 2
same 'the process' "$(j lock_order.0.pid)" "$victim"

# Calls are left out: the report has no orders, and gives the reason.
sb trace -p "$victim" locks -o "$T/t.pftrace" --for 300ms --min 1ns --json "$T/run.json"
ended 0
reported 'left out'
same 'not known' "$(j lock_order)" null
grep -q '^the orders of locks are not known: calls were left out' "$T/report.out" || fail "the reason: $(cat "$T/report.out")"
unchanged "$victim"
finish victim "$victim"

# Without a lock function the report has no line of locks.
sb trace libc.so.6:getpid -o "$T/t.pftrace" --json "$T/run.json" -- "$V/lockorder" opposite 1
reported 'no locks'
! grep -q 'lock_order\|"locks"' "$T/run.json" || fail 'locks in the report of others'

# A trace that cannot be read again: one line, and no order.
"$SB" trace locks -o /dev/stderr --format jsonl --json "$T/run.json" -- "$V/lockorder" opposite 1 2>&1 >/dev/null |
	cat >"$T/piped"
grep -q '^the orders of locks are not known: the trace went to a pipe or a device$' "$T/piped" || fail "piped: $(cat "$T/piped")"
same 'not known of a pipe' "$(j lock_order) $(j lock_order_reason)" 'null the trace went to a pipe or a device'
