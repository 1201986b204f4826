#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# What others say (names of processes, another user's session, slow clients) neither acts on the
# terminal, nor ends a program, nor keeps it from its work.
. "$SRC/test/lib.sh"
need python3

# The kernel module's directory: a name longer than any command.
mkdir "$T/kmod" && touch "$T/kmod/targets"
rc=0
SBINJECT_KMOD_DIR=$T/kmod "$CTL" --kmod update "$(printf '%03000d' 0)" 5 >"$T/sb.out" 2>"$T/sb.err" || rc=$?
ended 1
told 'more than 512 bytes'

# A process whose name has a line end, a parenthesis and the one character that begins an escape.
cat >"$T/named.py" <<'P'
import signal, time
over = []
signal.signal(signal.SIGTERM, lambda *a: over.append(1))
open("/proc/self/comm", "wb").write(b") Z\n1 \xc2\x9b3")
print("ready", flush=True)
while not over:
    time.sleep(0.005)
print("self-check ok")
P
start named python3 "$T/named.py"
named=$pid
sb doctor -p "$named"
grep -q '^ *is a process *yes' "$T/sb.out" || fail "doctor: $(cat "$T/sb.out" "$T/sb.err")"
finish named "$named"

# A session that is none: names with escapes, then an answer without an end.
mkdir -m 700 "$T/fake"
cat >"$T/fake.py" <<'P'
import json, os, signal, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(f"{sys.argv[1]}/{os.getpid()}.sock")
s.listen(8)
print("ready", flush=True)
while True:
    c = s.accept()[0]
    try:
        c.recv(4096)
        if sys.argv[2] == "escapes":
            c.sendall(json.dumps({"ok": True, "targets": [
                {"target": "\x1b]0;owned\x07\x9b31m", "delay_ns": 1, "hits": 2}]}).encode() + b"\n")
        while sys.argv[2] == "flood":
            c.sendall(b"x" * 4096)
            time.sleep(0.05)
    except OSError:
        pass
    c.close()
P
export SBINJECT_RUNTIME_DIR=$T/fake
start escapes python3 "$T/fake.py" "$T/fake" escapes
"$CTL" -s "$pid" list >"$T/sb.out" 2>"$T/sb.err" || fail "list: $(cat "$T/sb.err")"
! LC_ALL=C grep -q "$(printf '[\033\007]\|\302\233')" "$T/sb.out" || fail 'escapes of another session'
grep -q '\\x1b.*owned.*delay_ns=1 hits=2' "$T/sb.out" || fail "no list: $(cat "$T/sb.out")"
kill -KILL "$pid"
start flood python3 "$T/fake.py" "$T/fake" flood
rc=0
timeout 40 "$CTL" -s "$pid" list >"$T/sb.out" 2>"$T/sb.err" || rc=$?
ended 1
told 'does not answer within ten seconds'
kill -KILL "$pid"
export SBINJECT_RUNTIME_DIR=$T/run

# Connections that are held open, a byte now and then: a scrape is answered all the same.
start calls "$V/calls"
port=$(free_port)
rm -f "$T/told"
sb_start -p "$pid" :victim_work 0 --metrics "$port" --status-fd 9 9>"$T/told"
wait_for 20 grep -q '^attached' "$T/told" || fail 'no attach'
python3 - "$port" <<'P' || fail 'slow clients keep others from the metrics'
import socket, sys, time, urllib.request
port = int(sys.argv[1])
held = []
for _ in range(64):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(b"GET /met")
    held.append(s)
for _ in range(3):
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read()
    assert b"sbinject" in text
    for s in held:
        try:
            s.sendall(b"r")
        except OSError:
            pass
P
sb_stop
ended 0
finish calls "$pid"
