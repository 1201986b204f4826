#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 200 s
# As shared-page, with an interpreter: what a fork that has become nobody writes into the header of
# the page leads the agent of root's parent nowhere.
. "$SRC/test/lib.sh"
need_root
need_python

in_force() { grep -q 'targets in force' "$T/sb.err"; }
progress() { cat "$T/w/progress" 2>/dev/null || echo 0; }
beyond() { [ "$(progress)" -gt "$1" ]; }
runs_on() { wait_for 10 beyond $(($(progress) + 256)) || fail "$1 hangs: $(cat "$T/dropped.err")"; }
ctl() { "$CTL" "$@" >"$T/ctl.out" 2>"$T/ctl.err"; }
chmod 755 "$T"

for p in "${python[@]}"; do
	rm -rf "$T/w" "$SBINJECT_RUNTIME_DIR"
	mkdir "$T/w"
	start dropped "$p" "$SRC/test/victim/python/dropped.py" "$T/w"
	runs_on "$p"
	sb_start -v -p "$pid" py:__main__:step 1us --json "$T/run.json"
	wait_for 15 in_force || fail "$p: the agent did not get in"
	await_session
	touch "$T/w/go"
	wait_for 15 test -e "$T/w/scribbled" || fail "$p: nothing was overwritten"
	runs_on "$p"
	ctl add py:__main__:other 1us || fail "$p: add: $(cat "$T/ctl.err")"
	runs_on "$p"
	ctl update py:__main__:step 5us || fail "$p: update: $(cat "$T/ctl.err")"
	ctl add py:__main__:third 0 || fail "$p: add: $(cat "$T/ctl.err")"
	runs_on "$p"
	sleep 0.5
	sb_stop
	# Notes that are lost are functions that were not found.
	[ "$rc" -eq 0 ] || [ "$rc" -eq 3 ] || fail "$p: sbinject ended with status $rc"
	more "hits of $p" "$(j targets.0.hits)" 0
	more "hits of the second of $p" "$(j targets.1.hits)" 0
	let_go "$pid"
	runs_on "$p"
	finish dropped "$pid"
done
