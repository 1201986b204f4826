#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 120 s
# A main thread that sleeps in a subinterpreter is waited for: objects of one interpreter are not
# touched in the other, by the attach or by the detach, which would corrupt its memory.
. "$SRC/test/lib.sh"
need_python

in_force() { grep -q 'targets in force' "$T/sb.err"; }

for p in "${python[@]}"; do
	"$p" -W ignore -c 'import _interpreters' 2>/dev/null ||
		"$p" -W ignore -c 'import _xxsubinterpreters' 2>/dev/null || continue
	rm -rf "$T/w"
	mkdir "$T/w"
	start sub "$p" -W ignore "$SRC/test/victim/python/sub.py" "$T/w"
	sb_start -v -p "$pid" py:__main__:step 1us --json "$T/run.json"
	if "$p" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then
		wait_for 10 grep -q 'waiting for its interpreter' "$T/sb.err" || fail "$p: it does not wait"
		! in_force || fail "$p: in force in a subinterpreter"
	fi
	touch "$T/w/back"
	wait_for 15 in_force || fail "$p: the agent did not get in"
	touch "$T/w/went"
	wait_for 15 said sub '^called$' || fail "$p: the program does not go on"
	sb_stop
	ended 0 "$p"
	same "hits of $p" "$(j targets.0.hits) $(j targets.0.delayed)" '500 500'
	let_go "$pid"
	touch "$T/w/stop"
	status=0
	wait "$pid" || status=$?
	[ $status -eq 0 ] && said sub '^self-check ok$' || fail "$p: status $status: $(cat "$T/sub.err")"
	done=yes
done
[ "${done:-}" ] || skip 'no interpreter here has subinterpreters'
