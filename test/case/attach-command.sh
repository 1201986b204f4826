#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# -p PID ... -- COMMAND: hooked while COMMAND runs, which is not hooked; its status.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls"
snapshot "$pid"
sb -p "$pid" :victim_work 5us --json "$T/run.json" -- "$V/calls" -n 1000 -p 500000
ended 0
grep -q '^calls victim_work 1000$' "$T/sb.out" || fail 'the command did not run'
more hits "$(j targets.0.hits)" 0
same processes "$(j processes.#)" 1
same process "$(j processes.0.pid)" "$pid"
unchanged "$pid"
sb -p "$pid" :victim_work 0 -- sh -c 'exit 7'
ended 7
sb -p "$pid" :victim_work 0 -- sh -c 'kill -TERM $$'
ended 143
unchanged "$pid"
sb -p "$pid" :victim_work 0 -- "$T/nowhere"
ended 127
unchanged "$pid"
finish calls "$pid"
