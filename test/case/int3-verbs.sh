#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# limit: 120 s
# A breakpoint without a tracer ends its program. sweep, explain and find leave a living process untraced,
# but not with --mechanism int3: the program runs on, and is unchanged.
# beside others
. "$SRC/test/lib.sh"

start hot "$V/hot"
snapshot "$pid"
sb sweep -p "$pid" :cold --progress :cold --mechanism int3 --time 4s
[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "sweep: status $rc: $(cat "$T/sb.err")"
unchanged "$pid"
sb explain -p "$pid" --progress :cold --mechanism int3 --time 2s
ended 0 explain
unchanged "$pid"
sb find -p "$pid" --mechanism int3 --dry-run
ended 0 find
unchanged "$pid"
let_go "$pid"
finish hot "$pid"
