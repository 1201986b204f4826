#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A user without privileges attaches to a process of its own, and launches.
# quick
# beside others
. "$SRC/test/lib.sh"

need_root
need setpriv
[ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" -eq 0 ] || skip 'yama.ptrace_scope'
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
mkdir -m 777 "$T/open"
cp "$SB" "$V/calls" "$V/victim-lib.so" "$T/open/"
chmod 755 "$T/open/"*
cd "$T/open" || exit 2
start calls setpriv --reuid=65534 --regid=65534 --clear-groups "$T/open/calls" -t 2
snapshot "$pid" -t
nobody "$T/open/sbinject" -p "$pid" :victim_work 1us --for 300ms --json "$T/open/run.json" \
	2>"$T/sb.err" || fail "status $?"
more hits "$("$TOOL/jget" "$T/open/run.json" targets.0.hits)" 100
unchanged "$pid" -t
finish calls "$pid"
nobody "$T/open/sbinject" :victim_work 0 --json "$T/open/run2.json" -- "$T/open/calls" -n 1000 \
	>/dev/null 2>"$T/sb.err" || fail "launch: status $?"
same 'hits of a launch' "$("$TOOL/jget" "$T/open/run2.json" targets.0.hits)" 1000
