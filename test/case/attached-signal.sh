#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Programs are told when the hooks are in force, and shells by --daemon: no sleep is needed.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -t 1 -p 2000
snapshot "$pid"

mkfifo "$T/fifo"
"$SB" -p "$pid" :victim_work 0 --json "$T/run.json" --status-fd 7 7>"$T/fifo" 2>"$T/sb.err" &
pids+=($!)
exec 5<"$T/fifo"
read -r -t 20 word number <&5
same 'the first line' "$word" attached
hooked "$pid" || fail 'attached was said before the hooks were in'
kill -TERM "$number"
read -r -t 20 line <&5
same 'the last line' "$line" 'ended 0'
read -r -t 20 line <&5 && fail "a line after the last: $line"
exec 5<&-
more 'hits' "$(j targets.0.hits)" 0
unchanged "$pid"

# the error's status comes the same way
"$SB" -p "$pid" :nothing 0 --status-fd 7 7>"$T/status" 2>/dev/null
same 'the status of an error' "$(cat "$T/status")" 'ended 3'

rm -f "$T/run.json"
sb -p "$pid" :victim_work 0 --json "$T/run.json" --daemon
ended 0
hooked "$pid" || fail '--daemon returned before the hooks were in'
number=$(sed -n 's/.*kill \([0-9]*\) detaches.*/\1/p' "$T/sb.err")
kill -TERM "${number:?}"
wait_for 10 test -s "$T/run.json" || fail 'no result of --daemon'
wait_for 10 [ ! -e "/proc/$number" ]
unchanged "$pid"
sb -p "$pid" :nothing 0 --daemon
ended 3
told "no function 'nothing'"

refuses 125 'daemon' :f --daemon -- true
refuses 125 'not an open descriptor' :f --status-fd 99 -- true
refuses 125 'not an open descriptor' :f --status-fd x -- true
unchanged "$pid"
finish calls "$pid"
