#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# By uprobes: a delay slows calls while it is there, is measured truly, and is gone afterwards;
# every=N delays each Nth; --max-slowdown refuses.
. "$SRC/test/lib.sh"
need_uprobe

start calls "$V/calls" -r
wait_for 5 said calls '^rate' && sleep 0.6
before=$(rate calls)
attach_told "$pid" --backend uprobe :victim_work 1ms
sleep 1.2
during=$(rate calls)
sb_stop TERM
ended 0
let_go "$pid"
sleep 0.8
after=$(rate calls)
more 'calls a second before' "$before" 100000
less 'calls a second during 1 ms' "$during" 1100
more 'calls a second during 1 ms' "$during" 20
more 'calls a second after' "$after" $((before / 3))
hits=$(j targets.0.hits) injected=$(j targets.0.injected_ns) mean=$(j targets.0.given_ns.mean)
same outcome "$(j targets.0.outcome)" delayed
same 'every hit is delayed' "$(j targets.0.delayed)" "$hits"
more 'mean given' "${mean%.*}" 980000
less 'mean given' "${mean%.*}" 1100000
more injected "$injected" $((hits * 9 / 10 * 1000000))

sb -p "$pid" --backend uprobe :victim_work 1ms --max-slowdown 20% --json "$T/run.json"
ended 3
told 'max-slowdown'
let_go "$pid"
finish calls "$pid"

start calls "$V/calls" -t 2 -n 10000 -g "$T/gate" -w
attach_told "$pid" --backend uprobe :victim_work 1us every=10
touch "$T/gate"
wait_for 30 said calls '^called$' || fail 'the calls were not made'
sb_stop
ended 0
finish calls "$pid"
same hits "$(j targets.0.hits)" 20000
more delayed "$(j targets.0.delayed)" $((2000 - $(nproc) - 1)) # each processor counts for itself
less delayed "$(j targets.0.delayed)" $((2000 + $(nproc) + 1))
