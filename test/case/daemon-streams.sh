#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --daemon lets go of the program that started it once it is in force: pipes end, a terminal's prompt is not
# written over, and sbctl stop shows the one summary. A file is written on.
# beside others
# quick
. "$SRC/test/lib.sh"
need python3 script

start calls "$V/calls" -p 2000
target=$pid
summaries() { grep -c '^target  *mechanism' "$1"; }
stop() {
	"$CTL" stop >"$T/stop.out" 2>&1 || fail "stop: $(cat "$T/stop.out")"
	same 'summaries of sbctl stop' "$(summaries "$T/stop.out")" 1
}

# What subprocess.run(..., capture_output=True) does: it reads both pipes to their end.
timeout 20 python3 -c 'import subprocess, sys
r = subprocess.run(sys.argv[1:], capture_output=True, text=True)
sys.stdout.write(r.stderr)
sys.exit(r.returncode)' "$SB" --daemon -p "$target" :victim_work 0 --interval 5ms >"$T/captured" ||
	fail "capture_output: status $?: $(cat "$T/captured")"
grep -q 'attached, in the background: kill [0-9]' "$T/captured" || fail "captured: $(cat "$T/captured")"
stop

# A terminal: nothing comes after its prompt, not even the summary. The shell stays until the end.
mkfifo "$T/go"
script -qfc "$SB --daemon -p $target :victim_work 0 --interval 5ms; echo PROMPT; read -r _ <$T/go" \
	/dev/null </dev/null >"$T/typescript" 2>&1 &
terminal=$!
pids+=("$terminal")
wait_for 20 grep -q PROMPT "$T/typescript" || fail "no prompt: $(cat "$T/typescript")"
counts() { "$CTL" list && [ "$("$CTL" list | sed -n 's/.*hits=//p')" -gt 100 ]; }
wait_for 10 counts || fail 'it does not count' # for that long it had the time for status lines
stop
echo >"$T/go"
wait "$terminal"
same 'what a terminal gets after its prompt' "$(sed '1,/PROMPT/d' "$T/typescript" | tr -d '\r\n')" ''
grep -q 'sbctl watch' "$T/typescript" || fail "--interval is not explained: $(cat "$T/typescript")"

# A file gets all of it.
"$SB" --daemon -p "$target" :victim_work 0 --interval 5ms >/dev/null 2>"$T/log" || fail "$(cat "$T/log")"
wait_for 10 grep -q 'hits [1-9]' "$T/log" || fail "no status line in a file: $(cat "$T/log")"
stop
wait_for 10 grep -q '^target  *mechanism' "$T/log" || fail "no summary in a file: $(cat "$T/log")"
finish calls "$target"
