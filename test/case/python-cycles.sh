#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others, as live idle work
# limit: 600 s
# Attaches ($CYCLES an interpreter) and detaches on a program that allocates, collects, imports, starts threads and
# forks all the time: no deadlock, and no mapping, descriptor, thread or memory more than before.
. "$SRC/test/lib.sh"
need_python versions
CYCLES=${CYCLES:-15}

# still: until the program stands still; moving: on with it
still() {
	touch "$T/w/still"
	wait_for 30 test -e "$T/w/quiet" || fail "$p: the program is stuck: $(cat "$T/churn.err")"
}
moving() { rm -f "$T/w/still"; }

# What may not grow, with the program standing still.
maps() { wc -l <"/proc/$pid/maps"; }
fds() { find "/proc/$pid/fd" -type l | wc -l; }
tasks() { find "/proc/$pid/task" -maxdepth 1 -mindepth 1 | wc -l; }
rss() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status"; }

cycle() {
	sb -p "$pid" py:__main__:step 100ns --for 20ms --json "$T/run.json"
	[ "$rc" -eq 0 ] || [ "$rc" -eq 3 ] || fail "$p, cycle $1: status $rc" # 3: no call in the window
	kill -0 "$pid" 2>/dev/null || fail "$p, cycle $1: the program is gone: $(cat "$T/churn.err")"
	hits=$((hits + $(j targets.0.hits)))
}

for p in "${python[@]}"; do
	rm -rf "$T/w"
	mkdir "$T/w"
	start churn "$p" -W ignore "$SRC/test/victim/python/churn.py" "$T/w"
	hits=0
	for ((i = 1; i <= 10; i++)); do cycle "$i"; done
	still
	maps=$(maps) fds=$(fds) tasks=$(tasks) rss=$(rss)
	moving
	for (( ; i <= CYCLES; i++)); do cycle "$i"; done
	still
	same "$p: descriptors, $(find "/proc/$pid/fd" -type l -printf ' %l')" "$(fds)" "$fds"
	same "$p: threads" "$(tasks)" "$tasks"
	less "$p: mappings" "$(maps)" $((maps + 10))
	less "$p: resident kB" "$(rss)" $((rss + 12000))
	more "$p: hits" $hits $CYCLES
	let_go "$pid"
	moving
	touch "$T/w/stop"
	wait "$pid" || fail "$p: status $?: $(cat "$T/churn.err")"
	said churn '^self-check ok$' || fail "$p: the program is not content"
done
