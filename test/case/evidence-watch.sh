#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# sbctl status shows the counters of a session's evidence, and sbctl watch has a page of them, whose
# shares add up to its threads. Without evidence the page says so, and the table is a key away.
. "$SRC/test/lib.sh"
need python3

cat >"$T/page.py" <<'P'
import fcntl, os, pty, re, select, struct, sys, termios, time

def read(fd, until, times):  # until it has been drawn so often
    out, end = b"", time.time() + 20
    while out.count(until) < times and time.time() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                out += os.read(fd, 65536)
            except OSError:
                break
    assert out.count(until) >= times, out
    return out

pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "watch", "--interval", "300ms"])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 160, 100, 0, 0))
assert b"hits/s" in read(fd, b"e evidence", 2)
os.write(fd, b"e")
page = read(fd, b"e targets", 3)
os.write(fd, b"e")
assert b"hits/s" in read(fd, b"e evidence", 1).split(b"\x1b[H")[-1]
os.write(fd, b"q")
read(fd, b"\x1b[?1049l", 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
print(re.sub(rb"\x1b\[[?0-9;]*[a-zA-Z]", b"", page.split(b"\x1b[H")[-1]).decode().replace("\r", ""))
P

page() { python3 "$T/page.py" "$CTL" >"$T/page" 2>&1 || fail "$(cat "$T/page")"; }
shown() { awk -v name="$1" '$1 == name { print $2 }' "$T/page"; }

start reasons "$V/reasons"
attach "$pid" :item 0 --evidence
await_session
page
if [[ $(shown futex) == - ]]; then # by /proc
	[[ $(shown on_cpu) =~ ^[0-9.]+$ ]] || fail "$(cat "$T/page")"
else
	awk -v threads="$(ls "/proc/$pid/task" | wc -l)" '$3 == "%" && !/^(machine|cgroup)_/ { sum += $2 }
		$1 == "sleep" && $2 < 90 { print "v-idle sleeps for more than " $2 " %"; exit 1 }
		END { if (sum < 95 * threads || sum > 105 * threads) {
			print sum " % of " threads " threads"; exit 1 } }' "$T/page" >"$T/awk" ||
		fail "$(cat "$T/awk" "$T/page")"
fi
"$CTL" status >"$T/status" || fail status
grep -q '^on_cpu_ns: [1-9]' "$T/status" || fail "status: $(cat "$T/status")"
grep -q '^machine_interrupts: [1-9]' "$T/status" || fail "status: $(cat "$T/status")"
grep -Eq '^machine_interrupts +[1-9][0-9]*/s' "$T/page" || fail "the machine: $(cat "$T/page")"
sb_stop
ended 0

attach "$pid" :item 0
await_session
page
grep -q 'run it with --evidence' "$T/page" || fail "without evidence: $(cat "$T/page")"
"$CTL" status >"$T/status" || fail status
! grep -q on_cpu_ns "$T/status" || fail 'counters without evidence'
sb_stop
ended 0
finish reasons "$pid"
