#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A session's socket: rubbish, endless lines, clients that never read and many at once harm no process; it
# is its owner's alone; what a killed session leaves is cleaned up.
# quick
# beside others
. "$SRC/test/lib.sh"
need python3

start calls "$V/calls"
snapshot "$pid"
attach "$pid" :victim_work 0
await_session
socket=$(ls "$SBINJECT_RUNTIME_DIR"/*.sock)
same 'mode of the directory' "$(stat -c %a "$SBINJECT_RUNTIME_DIR")" 700
[ "$(stat -c %a "$socket")" = 600 ] || [ "$(stat -c %a "$socket")" = 700 ] || fail "mode of the socket"

python3 - "$socket" <<'P' || fail 'the socket was hurt'
import json, os, random, socket, sys

def dial():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect(sys.argv[1])
    return s

def ask(s, request):
    s.sendall(json.dumps(request).encode() + b"\n")
    return json.loads(s.makefile().readline())

random.seed(1)
for i in range(200):  # rubbish of all kinds, each on a line of its own
    s = dial()
    line = random.choice([
        os.urandom(random.randrange(1, 3000)).replace(b"\n", b" "),
        b"[" * random.randrange(1, 20000),
        b'{"op":' + random.choice([b"1", b"null", b"[]", b'"frob"', b'"add","words":[1]', b'"arm","targets":[{"index":-1}]',
                                    b'"arm","targets":[{"index":99999999999}]', b'"update","target":5',
                                    b'"delay","delay_ns":-1', b'"add","words":["' + b"a" * 5000 + b'"]']) + b"}",
    ])
    try:
        s.sendall(line + b"\n")
        answer = json.loads(s.makefile().readline())
        assert answer["ok"] is False and answer["error"], answer
    except (ConnectionError, BrokenPipeError):
        pass
    s.close()
endless = dial()  # a line that never ends is dropped
try:
    for _ in range(200):
        endless.sendall(b"x" * 4096)
    endless.recv(1)
except (ConnectionError, BrokenPipeError, socket.timeout):
    pass
deaf = dial()  # a client that asks and never reads
deaf.settimeout(0.5)
try:
    while True:
        deaf.sendall(b'{"op":"lanes"}\n' * 100)
except (socket.timeout, ConnectionError, BrokenPipeError):
    pass
s = dial()  # what was removed is not armed again
assert ask(s, {"op": "add", "words": [":victim_idle", "5us"]})["ok"]
index = ask(s, {"op": "list"})["targets"][1]["index"]
assert ask(s, {"op": "arm", "targets": [{"index": index, "on": True, "delay_ns": 7}]})["ok"]
assert ask(s, {"op": "update", "target": ":victim_idle", "every": 0})["ok"]
# A reading right after a call: it waits for one, but not for long.
after = lambda index, poll_ns: ask(s, {"op": "lanes", "after": {"index": index, "poll_ns": poll_ns}})
assert any(after(0, 1000)["moved"] is True for _ in range(100))  # where others have the processor
assert after(index, 1000)["moved"] is False
assert "moved" not in ask(s, {"op": "lanes"})
assert after(99, 1000)["error"] == "ENOENT" and after(None, 1)["error"] == "ENOENT"
assert after(0, 0)["error"] == "ERANGE" and after(0, 10**9)["error"] == "ERANGE"
assert ask(s, {"op": "remove", "target": ":victim_idle"})["ok"]
assert ask(s, {"op": "arm", "targets": [{"index": index, "on": True, "delay_ns": 8}]})["error"] == "ENOENT"
many = [dial() for _ in range(24)]
for s in many:
    assert ask(s, {"op": "status"})["ok"]
P
"$CTL" status | grep -q '^targets: 1$' || fail 'it does not answer any more'
hooked "$pid" || fail 'the hook is gone'

# Of a session that was killed the socket is removed by who finds it.
tracer=$(sed -n 's/^TracerPid:	//p' "/proc/$pid/status")
kill -KILL "$sb_pid" "$tracer"
wait "$sb_pid" 2>/dev/null
[ -S "$socket" ] || fail 'no stale socket to clean'
cleaned() { "$CTL" sessions >"$T/sessions" 2>&1; [ ! -e "$socket" ]; }
wait_for 10 cleaned || fail 'the stale socket is still there' # a killed tracer takes its time to die
! grep -q "^$sb_pid " "$T/sessions" || fail 'a dead session is listed'
sb recover -p "$pid"
ended 0
unchanged "$pid"
finish calls "$pid"
