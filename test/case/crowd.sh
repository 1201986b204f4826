#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Beside a crowd of busy threads sbinject takes a high priority, and what it starts does not get it.
# limit: 120 s
. "$SRC/test/lib.sh"
need_root

priority() { ps -o ni= -p "$1" | tr -d ' '; }
tracer() { pgrep -P "$sb_pid" -x sbinject-tracer | head -n 1; }

[ "$(priority $$)" = 0 ] || skip 'the tests have a priority of their own'
start calls "$V/calls" -t $((20 * $(nproc)))
snapshot "$pid"
sb_start -p "$pid" :victim_work 0 -- sh -c "ps -o ni= -p \$\$ >'$T/ni'; exec sleep 3"
wait_for 30 test -s "$T/ni" || fail "the command does not run: $(cat "$T/sb.err")"
same "the command line's priority" "$(priority "$sb_pid")" -20
same "the tracer's" "$(priority "$(tracer)")" -20
sb_wait
ended 0
same "the command's" "$(tr -d ' ' <"$T/ni")" 0
unchanged "$pid"
finish calls "$pid"
