#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A client that asks more than it reads gets each answer in the end; one that keeps the session busy
# does not keep it from renewing the lease, nor from following forks.
# beside others
. "$SRC/test/lib.sh"
need python3

start calls "$V/forker" "$T/trouble"
targets=()
for i in $(seq 30); do targets+=("later$i.so:function_$i" 5us); done
attach "$pid" :fork_work 1us "${targets[@]}"
await_session
sock=$(echo "$SBINJECT_RUNTIME_DIR"/*.sock)
cat >"$T/flood.py" <<'END'
import socket, sys, threading, time

MANY, CHANGES = 3000, 300
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
def ask():
    s.sendall(b'{"op":"list"}\n' * MANY)
    for _ in range(CHANGES):
        s.sendall(b'{"op":"remove","target":":fork_work"}\n{"op":"add","words":[":fork_work","1us"]}\n')
threading.Thread(target=ask, daemon=True).start()
time.sleep(1)
answers = 0
wrong = 0
for line in s.makefile("rb"):
    answers += 1
    wrong += b'"ok":true' not in line
    if answers == MANY + 2 * CHANGES:
        break
print(answers, wrong)
END
timeout 45 python3 "$T/flood.py" "$sock" >"$T/flood.out" 2>&1
same 'answers, and wrong ones' "$(cat "$T/flood.out")" '3600 0'
sb_stop
ended 0
same 'lapsed hits' "$(j lease_lapsed_hits)" 0
more hits "$(j targets.0.hits)" 0
finish calls "$pid"
[ ! -s "$T/trouble" ] || fail "a child went wrong: $(cat "$T/trouble")"
