#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two sessions on one machine. The uprobe backend hears of libraries by a breakpoint at the dynamic
# linker's notice: a session about one process puts it into no other; one that follows a command
# puts it into every process, and a session of hooks hears of libraries all the same, from their
# constructors on, and of Python targets.
# beside idle work
. "$SRC/test/lib.sh"
need_uprobe

TOOL_NOTICE="$T/notice.py"
cat >"$TOOL_NOTICE" <<'P'
# The first byte of _dl_debug_state in a process: as in the file?
import subprocess, sys
path = next(l.split()[5] for l in open(f"/proc/{sys.argv[1]}/maps") if "/ld-linux" in l)
base = next(int(l.split("-")[0], 16) for l in open(f"/proc/{sys.argv[1]}/maps") if "/ld-linux" in l)
sym = next(l.split() for l in subprocess.run(["readelf", "-W", "--dyn-syms", path], text=True,
           capture_output=True).stdout.splitlines() if "_dl_debug_state" in l)
at = int(sym[1], 16)
with open(f"/proc/{sys.argv[1]}/mem", "rb", 0) as mem, open(path, "rb") as file:
    mem.seek(base + at)
    file.seek(at)
    print("taken" if mem.read(1) != file.read(1) else "free")
P
notice() { python3 "$TOOL_NOTICE" "$1"; }

# The library comes later, in a process that is hooked by jumps; all its calls count.
hooked_later() { # NAME
	rm -f "$T/gate"
	start later "$V/later" "$V/victim-lib.so" 500 1 "$T/gate"
	[ "$1" != same ] || uprobe_session -p "$pid" :main 0 never.so:fn 0
	attach_told "$pid" victim-lib.so:lib_fn 1us
	! grep -q 'loaded later' "$T/sb.err" || fail "$1: $(cat "$T/sb.err")"
	touch "$T/gate"
	wait_for 20 said later '^called$' || fail "$1: the library was not loaded"
	sb_stop
	ended 0 "$1"
	same "$1: hits" "$(j targets.0.hits)" "$(calls later lib_fn)"
}

uprobe_session() {
	rm -f "$T/u.told"
	env --default-signal=INT "$SB" --backend uprobe --status-fd 9 "$@" 9>"$T/u.told" >"$T/u.out" 2>"$T/u.err" </dev/null &
	session=$!
	pids+=("$session")
	wait_for 20 grep -q '^attached' "$T/u.told" || fail "no session of uprobes: $(cat "$T/u.err")"
}
end_session() {
	kill -INT "$session"
	wait "$session" || true
}

# About one process: no other has the breakpoint.
start calls "$V/calls" -r
one=$pid
uprobe_session -p "$one" :victim_work 0 never.so:fn 0
same 'its own process' "$(notice "$one")" taken
start stranger "$V/calls" -r
same 'a stranger' "$(notice "$pid")" free
finish stranger "$pid"
hooked_later other
let_go "$pid"
finish later "$pid"
end_session
same 'after it' "$(notice "$one")" free

# The very process: the breakpoint stays when the hooks have gone.
hooked_later same
same 'its own process' "$(notice "$pid")" taken
end_session
let_go "$pid"
finish later "$pid"

# Of a command and what it starts: everybody has it.
uprobe_session :main 0 never.so:fn 0 -- "$V/calls" -r
[ "$(notice "$one")" = taken ] || echo 'hooks of another session keep the breakpoint away'
hooked_later launch
cat >"$T/later.py" <<'P'
def f(): pass
for i in range(1000): f()
P
if [ -s "$BUILD/python/agent.so.stripped" ]; then
	mapfile -t python < <(pythons)
	for py in "${python[@]}"; do
		sb py:__main__:f 1us --json "$T/run.json" -- "$py" "$T/later.py"
		ended 0 "$py"
		! grep -q 'loaded later' "$T/sb.err" || fail "$py: $(cat "$T/sb.err")"
		same "$py: hits" "$(j targets.0.hits)" 1000
	done
fi
end_session
let_go "$pid"
finish later "$pid"
finish calls "$one"
