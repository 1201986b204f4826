#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where files in memory may not be for code (vm.memfd_noexec) page and agent get in all the same.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"

need_root
need unshare
need_python
[ -e /proc/sys/vm/memfd_noexec ] || skip 'the kernel has no vm.memfd_noexec'
unshare -pf --mount-proc true 2>/dev/null || skip 'unshare is not permitted'
PY=$SRC/test/victim/python

inner() { tr -d ' ' <"/proc/$pid/task/$pid/children"; }
begin() { # LEVEL NAME COMMAND...
	local level=$1 name=$2
	shift 2
	start "$name" unshare -pf --mount-proc sh -c \
		"echo $level >/proc/sys/vm/memfd_noexec && exec \"\$@\"" sh "$@"
	target=$(inner)
}

for level in 0 1 2; do
	begin $level calls "$V/calls"
	snapshot "$target"
	sb -p "$target" :victim_work 1us --for 100ms --json "$T/run.json"
	ended 0 "level $level"
	more "hits at level $level" "$(j targets.0.hits)" 100
	unchanged "$target"
	kill -TERM "$target"
	wait "$pid"
	said calls '^self-check ok$' || fail "level $level: the victim is not content"

	rm -rf "$T/w"
	mkdir "$T/w"
	begin $level waits "${python[0]}" "$PY/waits.py" sleep "$T/w"
	sb_start -v -p "$target" py:__main__:step 1us --json "$T/run.json"
	wait_for 15 grep -q 'targets in force' "$T/sb.err" || fail "level $level: the agent did not get in"
	touch "$T/w/go"
	wait_for 15 test -e "$T/w/went" || fail "level $level: the program does not go on"
	sb_stop
	ended 0 "python, level $level"
	same "hits at level $level" "$(j targets.0.hits)" 3000
	let_go "$target"
	touch "$T/w/stop"
	wait "$pid"
done
