#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# list shows what matches, where and how, and touches nothing.
# quick
. "$SRC/test/lib.sh"

start calls "$V/calls" -t 2
snapshot "$pid" -t
sb list -p "$pid" ':victim_*' libc.so.6:nanosleep
ended 0
for word in victim_work victim_other victim_idle jump calls 0x; do
	grep -q "$word" "$T/sb.out" || fail "list does not show $word"
done
! grep -q victim_data "$T/sb.out" || fail 'list shows data'
unchanged "$pid" -t
sb list -p "$pid" :calls_none
ended 3
sb list ':victim_work' -- "$V/calls"
ended 0
grep -q victim_work "$T/sb.out" || fail 'list of a command shows nothing'
unchanged "$pid" -t
finish calls "$pid"
