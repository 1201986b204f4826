#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Threads that hit an int3 without end, far faster than their traps are served: the session goes on
# all the same (its lease is renewed, its end comes), and no thread starves behind the others.
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -t 32
snapshot "$pid" -t
sb -p "$pid" :victim_work 0 --for 2s --mechanism int3 --json "$T/run.json"
ended 0
more hits "$(j targets.0.hits)" 1000
same 'hits under a lapsed lease' "$(j lease_lapsed_hits)" 0
less 'seconds for 2 s' "$(j wall_s | cut -d. -f1)" 6
unchanged "$pid" -t
finish calls "$pid"

# A thread that waited for all others to be through would see a gap as long as the run.
sb --mechanism int3 :victim_work 0 --json "$T/run.json" -- "$V/calls" -t 32 -n 4000 -g "$T/gate" &
run=$!
pids+=("$run")
wait_for 20 said sb '^ready$' || fail 'the victim did not start'
touch "$T/gate"
wait "$run"
same calls "$(j targets.0.hits)" 128000
elapsed=$(sed -n 's/^elapsed_ns //p' "$T/sb.out")
gap=$(sed -n 's/^gap_ns //p' "$T/sb.out")
less 'the longest gap of a thread' $((gap * 2)) "$elapsed"
