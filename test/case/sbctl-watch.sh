#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# sbctl watch draws on a terminal of any size, follows its changes, and leaves it as it was; elsewhere
# it prints plain tables. It ends with the session.
. "$SRC/test/lib.sh"
need python3

start calls "$V/calls"
snapshot "$pid"
attach "$pid" :victim_work 0
await_session
cat >"$T/watch.py" <<'P'
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

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

def widest(out):  # of the lines drawn, in columns
    text = re.sub(rb"\x1b\[[?0-9;]*[a-zA-Z]", b"", out.replace(b"\x1b[H", b"\n")).decode()
    return max(len(line) for line in text.replace("\r", "").split("\n"))

for how in ("q", "INT", "TERM", "QUIT"):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(sys.argv[1], [sys.argv[1], "watch", "--interval", "100ms"])
    if how != "INT":  # one that was never told its size has one all the same
        size(fd, 30, 120)
    out = read(fd, 1)
    assert b"\x1b[?1049h" in out and b":victim_work" in out and b"hits/s" in out, out
    size(fd, 6, 40)  # the kernel tells it
    read(fd, 0.15)
    out = read(fd, 0.3)
    assert b":victim_work" in out and widest(out) <= 40, out
    if how == "q":
        os.write(fd, b"q")
    else:
        os.kill(pid, getattr(signal, "SIG" + how))
    out = read(fd, 1)
    assert b"\x1b[?1049l" in out and b"\x1b[?25h" in out, out
    cooked = termios.ICANON | termios.ECHO
    assert termios.tcgetattr(fd)[3] & cooked == cooked, "the terminal is not as it was"
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

# Ctrl-Z leaves the terminal to the shell, and fg takes it again.
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "watch", "--interval", "100ms"])
read(fd, 0.3)
os.kill(pid, signal.SIGTSTP)
assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
assert b"\x1b[?1049l" in read(fd, 0.2) and termios.tcgetattr(fd)[3] & termios.ECHO
os.kill(pid, signal.SIGCONT)
assert b"\x1b[?1049h" in read(fd, 0.3) and not termios.tcgetattr(fd)[3] & termios.ECHO
os.write(fd, b"q")
os.waitpid(pid, 0)

# A dumb terminal gets no escapes; without a keyboard it does not turn in circles.
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "dumb"
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.execv(sys.argv[1], [sys.argv[1], "watch", "--interval", "100ms"])
out = read(fd, 1)
assert b":victim_work" in out and b"\x1b" not in out, out
times = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
assert int(times[11]) + int(times[12]) < 30, "it is busy: " + str(times[11:13])
os.kill(pid, signal.SIGINT)
os.waitpid(pid, 0)
P
python3 "$T/watch.py" "$CTL" >"$T/py.out" 2>&1 || fail "$(cat "$T/py.out")"
"$CTL" watch --interval 100ms >"$T/plain" 2>&1 &
watcher=$!
pids+=("$watcher")
wait_for 10 grep -q ':victim_work *on' "$T/plain" || fail "no plain table: $(cat "$T/plain")"
! grep -q $'\033' "$T/plain" || fail 'escapes where there is no terminal'
# What is removed goes, and what is added comes; two of one name are two.
"$CTL" add later.so:fn 1us >"$T/ctl.out" && "$CTL" add later.so:fn 2us "--pid=$pid" >"$T/ctl.out" ||
	fail 'add'
wait_for 10 grep -q "^later.so:fn pid=$pid *pending .* 2us " "$T/plain" || fail "two: $(tail -n 5 "$T/plain")"
grep -q '^later.so:fn  *pending .* 1us ' "$T/plain" || fail "two: $(tail -n 5 "$T/plain")"
"$CTL" remove later.so:fn >"$T/ctl.out" && "$CTL" remove later.so:fn "--pid=$pid" >"$T/ctl.out" || fail remove
gone() { ! tail -n 2 "$T/plain" | grep -q later; }
wait_for 10 gone || fail "what was removed is still there: $(tail -n 5 "$T/plain")"
sb_stop
ended 0
wait_for 10 test ! -e "/proc/$watcher" || fail 'watch outlives the session'
unchanged "$pid"
finish calls "$pid"
