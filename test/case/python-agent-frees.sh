#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A native target in the C library beside a Python target: the agent hardly calls that function itself.
# Each such call counts, and takes the delay with the GIL held: free() of nothing, 130 times, held it
# for 130 ms under a delay of 1 ms.
# beside others
. "$SRC/test/lib.sh"
need_python

for p in "${python[@]}"; do
	start idle "$p" -c 'import time
print("ready", flush=True)
time.sleep(1000)'
	attach_told "$pid" py:__main__:f 0 libc.so.6:free 0
	sleep 0.2
	sb_stop INT
	[ -n "$(j targets.1.hits)" ] || fail "$p: free() was not hooked"
	less "$p: calls of free() by an interpreter that sleeps" "$(j targets.1.hits)" 10
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || :
done
