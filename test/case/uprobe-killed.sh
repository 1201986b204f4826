#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL of tracer, of command line, of both: the kernel takes every probe out, the target runs on.
# beside others
. "$SRC/test/lib.sh"
need_uprobe

children() { cat "/proc/$1/task/$1/children"; }

for who in tracer client both; do
	start calls "$V/calls" -r
	attach_told "$pid" --backend uprobe :victim_work 100us
	read -r tracer _ < <(children "$sb_pid")
	case $who in
	tracer) kill -KILL "$tracer" ;;
	client) kill -KILL "$sb_pid" ;;
	both) kill -KILL "$tracer" "$sb_pid" ;;
	esac
	sb_wait 2>/dev/null
	wait_for 5 "$TOOL/textcheck" "$pid" || fail "$who: the probe stays"
	wait_for 5 eval "! kill -0 $tracer" || fail "$who: the tracer stays"
	sleep 0.4
	more "$who: calls a second after" "$(rate calls)" 100000
	let_go "$pid"
	finish calls "$pid"
done
