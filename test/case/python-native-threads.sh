#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# An interpreter whose main thread is busy, beside threads that are none of its own and sleep: before
# 3.13 a call that one of those queues is not looked at, so the main thread must queue it.
. "$SRC/test/lib.sh"
need_python

cat >"$T/busy.py" <<'P'
import ctypes, sys, time
c = ctypes.CDLL(None)
for i in range(4):
    c.pthread_create(ctypes.byref(ctypes.c_ulong()), None, ctypes.cast(c.pause, ctypes.c_void_p), None)
def step(): pass
calls = 0
print("ready", flush=True)
end = time.time() + float(sys.argv[1])
while time.time() < end:
    step()
    calls += 1
print("calls step", calls)
print("self-check ok", flush=True)
P
for p in "${python[@]}"; do
	start busy "$p" "$T/busy.py" 2
	sb -p "$pid" py:__main__:step 0 --for 500ms --json "$T/run.json"
	ended 0 "$p: $(cat "$T/sb.err")"
	more "hits of $p" "$(j targets.0.hits)" 0
	let_go "$pid"
	wait "$pid" || fail "$p: status $?"
	said busy '^self-check ok$' || fail "$p did not end well"
	more 'calls against hits' "$(calls busy step)" "$(j targets.0.hits)"
done
