#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# A sweep that is ended while calls are timed, by the user or by SIGKILL of all its processes, leaves
# nothing of the agent behind: on 3.10 and 3.11 that has to wait for calls that it is beneath.
# limit: 240 s
. "$SRC/test/lib.sh"
need_python versions

timing() { grep -q 'own time' "$T/own.ev" 2>/dev/null; }

# begin: a sweep of $pid, until it times calls
begin() {
	rm -f "$T/own.ev"
	sb_start sweep -q -p "$pid" py:__main__:rec py:__main__:steps resume=yes \
		--progress py:__main__:item --time 6s --events "$T/own.ev"
	wait_for 20 timing || fail "$p: no calls were timed"
	sleep 0.1
}

for p in "${python[@]}"; do
	start own "$p" "$SRC/test/victim/python/sweep.py" own "$T/own.log" 0.001
	snapshot "$pid"
	for ((round = 1; round <= $(rounds 2 3); round++)); do
		begin
		sb_stop
		ended 6
		! grep 'the agent' "$T/sb.err" || fail "$p: the agent stayed"
		let_go "$pid"
	done
	begin
	read -ra tracers <"/proc/$sb_pid/task/$sb_pid/children"
	kill -KILL "$sb_pid" "${tracers[@]}"
	wait "$sb_pid" 2>/dev/null
	sleep 1.2 # the lease runs out
	sb recover -p "$pid"
	ended 0 "$p: recover"
	! grep 'the agent' "$T/sb.err" || fail "$p: the agent stayed"
	let_go "$pid"
	finish own "$pid"
done
