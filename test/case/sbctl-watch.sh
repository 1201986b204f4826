#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# sbctl watch draws on a terminal of any size, follows its changes, and leaves it as it was; elsewhere
# it prints plain tables. It ends with the session.
. "$SRC/test/lib.sh"
need python3

start calls "$V/calls"
snapshot "$pid"
attach "$pid" :victim_work 0
cat >"$T/watch.py" <<'P'
import fcntl, os, pty, select, signal, struct, sys, termios, time

def size(fd, rows, cols):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

def read(fd, seconds):
    out, end = b"", time.time() + seconds
    while time.time() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                part = os.read(fd, 65536)
            except OSError:
                break
            if not part:
                break
            out += part
    return out

for how in ("q", "INT", "TERM"):
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(sys.argv[1], [sys.argv[1], "watch", "--interval", "100ms"])
    size(fd, 30, 120)
    out = read(fd, 1)
    assert b"\x1b[?1049h" in out and b":victim_work" in out and b"hits/s" in out, out
    size(fd, 6, 60)
    os.kill(pid, signal.SIGWINCH)
    out = read(fd, 0.5)
    assert b":victim_work" in out, out
    if how == "q":
        os.write(fd, b"q")
    else:
        os.kill(pid, getattr(signal, "SIG" + how))
    out = read(fd, 1)
    assert b"\x1b[?1049l" in out and b"\x1b[?25h" in out, out
    cooked = termios.ICANON | termios.ECHO
    assert termios.tcgetattr(fd)[3] & cooked == cooked, "the terminal is not as it was"
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
P
python3 "$T/watch.py" "$CTL" >"$T/py.out" 2>&1 || fail "$(cat "$T/py.out")"
"$CTL" watch --interval 100ms >"$T/plain" 2>&1 &
watcher=$!
pids+=("$watcher")
wait_for 10 grep -q ':victim_work *on' "$T/plain" || fail "no plain table: $(cat "$T/plain")"
! grep -q $'\033' "$T/plain" || fail 'escapes where there is no terminal'
sb_stop
ended 0
wait_for 10 test ! -e "/proc/$watcher" || fail 'watch outlives the session'
unchanged "$pid"
finish calls "$pid"
