#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others, as live idle work
# limit: 120 s
# A program of 1200 modules is not kept waiting while the agent looks at them: how long it held the
# interpreter's lock at most is measured and said, and the counts are exact all the same, also those
# of a second session, which meets what the first has left in the interpreter.
. "$SRC/test/lib.sh"
need_python versions
PY=$SRC/test/victim/python

in_force() { grep -q 'targets in force' "$T/sb.err"; }
done_calling() { [ ! -e "$T/go" ]; }

# session PYTHON NUMBER: NUMBER modules are there, and one more comes
session() {
	sb_start -v -p "$pid" 'py:many.m*:called' 0 'py:many.new*:called' 0 'py:many.*:hidden7' 0 \
		'py:many.m*:C3.method' 0 'py:many.m1?:C?.static' 0 --json "$T/run.json"
	wait_for 30 in_force || fail "$1: not in force"
	touch "$T/go"
	wait_for 30 done_calling || fail "$1: the program does not go on"
	# shellcheck disable=SC2119 # by SIGINT
	sb_stop
	ended 0 "$1"
	same "$1: called" "$(j targets.0.hits)" 1200
	same "$1: of new modules" "$(j targets.1.hits)" "$2"
	same "$1: behind a wrapper" "$(j targets.2.hits)" $((1200 + $2))
	same "$1: methods" "$(j targets.3.hits)" 1200
	same "$1: never called" "$(j targets.4.hits)" 0
	for end in attach detach; do
		held=$(j gil_held_us.$end)
		more "$1: the hold at $end" "$held" 0
		[ "$held" -ge "${best[$end]-1000000000}" ] || best[$end]=$held
	done
	told '; the GIL at most .* and '
	let_go "$pid"
}

short() { [ "${best[attach]}" -lt 50000 ] && [ "${best[detach]}" -lt 50000 ]; }

# The machine may stop the thread that holds the lock for long, too, but not each time.
for p in "${python[@]}"; do
	declare -A best=()
	rm -f "$T/go"
	start many "$p" "$PY/many.py" 1200 "$T/go"
	session "$p" 1
	session "$p" 2
	for ((n = 3; n <= 8; n++)); do
		short || session "$p" $n
	done
	short || fail "$p: the lock was held for ${best[attach]} and ${best[detach]} us"
	finish many "$pid"
done
