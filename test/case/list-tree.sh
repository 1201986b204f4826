#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# list over a tree: whose each row is, one row for what forks share, names as people write them.
. "$SRC/test/lib.sh"

cat >"$T/parent.sh" <<'END'
(while [ ! -e stop ]; do read -rt 0.1 <>fifo; done) &
mkfifo fifo
echo ready
while [ ! -e stop ]; do read -rt 0.1 <>fifo; done
wait
echo self-check ok
END
start parent bash "$T/parent.sh"
child=$(tr -d ' ' <"/proc/$pid/task/$pid/children")
sb list -p "$pid" libc.so.6:getpid 'libc.so.6:gettimeofd*' --json "$T/run.json"
ended 0
same 'rows of a function that both have' "$(grep -c 'getpid' "$T/sb.out")" 1
grep -qE " $pid,$child +jump$" "$T/sb.out" || fail "not whose it is: $(cat "$T/sb.out")"
same 'pids of the row' "$(j targets.0.sites.0.pids.#)" 2
same 'outcome' "$(j targets.0.outcome)" matched
same 'hits, which were not counted' "$(j targets.0.hits)" null
sb list -p "$pid" --no-children libc.so.6:getpid
! grep -q pids "$T/sb.out" || fail 'a column of pids for one process'
touch stop
wait "$pid" || fail 'the shell failed'

[ -x "$V/throw" ] || skip 'no C++ compiler: names were not looked at'
sb list ':victim::*' --json "$T/run.json" -- "$V/throw"
ended 0
grep -qE ' +victim::passer\(int\) +0x' "$T/sb.out" || fail "not demangled: $(cat "$T/sb.out")"
symbols=$(for i in 0 1 2; do j targets.0.sites.$i.symbol; done)
[[ $symbols == *_ZN6victim6passerEi* ]] || fail "the JSON lacks the mangled names: $symbols"
