#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Clients that hold all places of a session and do nothing with them keep no client out: those that say
# nothing, that stop in the middle of a line, that never read their answers.
# beside others
. "$SRC/test/lib.sh"
need python3

start calls "$V/calls"
snapshot "$pid"
attach "$pid" :victim_work 0
await_session
cat >"$T/crowd.py" <<'P'
import os, socket, sys, time

def dial():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    return s

held = []
for i in range(200):
    s = dial()
    held.append(s)
    if sys.argv[2] == "half":
        s.sendall(b'{"op":"sta')
    elif sys.argv[2] == "deaf":
        try:
            while True:
                s.send(b'{"op":"list"}\n' * 1000, socket.MSG_DONTWAIT)
        except OSError:
            pass
    if sys.argv[2] == "deaf" and i == 31:
        break
open(sys.argv[3], "w").close()
time.sleep(60)
P
for how in silent half deaf; do
	python3 "$T/crowd.py" "$SBINJECT_RUNTIME_DIR"/*.sock $how "$T/$how" &
	crowd=$!
	pids+=("$crowd")
	wait_for 30 test -e "$T/$how" || fail "$how: they do not get in"
	"$CTL" status >"$T/ctl.out" 2>&1 || fail "$how: $(cat "$T/ctl.out")"
	kill -KILL "$crowd"
	wait "$crowd" 2>/dev/null
done
sb_stop
ended 0
same 'lapsed hits' "$(j lease_lapsed_hits)" 0
unchanged "$pid"
finish calls "$pid"
