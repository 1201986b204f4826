#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A uprobe on the dynamic linker's notice keeps sbinject from hearing of libraries: it says so, and
# does not pass it off as "never mapped".
. "$SRC/test/lib.sh"
need_uprobe

start calls "$V/calls" -r
sb_start --backend uprobe -p "$pid" :victim_work 0 never.so:fn 0 # its probe is in every process
wait_for 10 test -e "/proc/$sb_pid"
sleep 1
rc=0
timeout 20 "$SB" libm.so.6:sin 0 -- "$V/calls" -n 100 >"$T/second.out" 2>"$T/second.err" || rc=$?
ended 0
grep -q 'libraries loaded later are not seen: .*another tool has' "$T/second.err" ||
	fail "it does not say so: $(cat "$T/second.err")"
sb_stop
ended 0
finish calls "$pid"
