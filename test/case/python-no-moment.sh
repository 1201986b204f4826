#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An interpreter that lets no one in for the whole session: the summary gives that as the reason, and
# not a module that never appeared.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
need_python versions

for p in "${python[@]}"; do
	start held "$p" -c 'import ctypes, os, sys, time
libc = ctypes.PyDLL(None)          # calls hold the GIL
def step():
    return 1
print("ready", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
libc.sleep(5)
step()
print("self-check ok", flush=True)
time.sleep(1000)' "$T/go"
	touch "$T/go"
	sleep 0.2
	sb_start -p "$pid" py:__main__:step 0 --json "$T/run.json"
	sleep 1.5
	sb_stop INT
	ended 3 "$p"
	same "$p: outcome" "$(j targets.0.outcome)" pending
	told 'pending: py:__main__:step: the interpreter of process .* reached no safe point'
	wait_for 20 said held '^self-check ok$' || fail "$p: the program went wrong"
	let_go "$pid"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || :
	rm -f "$T/go"
done
