#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A delay slows calls while it is there, is measured truly, and is gone afterwards.
. "$SRC/test/lib.sh"

start calls "$V/calls" -r
wait_for 5 said calls '^rate' && sleep 0.6
before=$(rate calls)
snapshot "$pid"
attach "$pid" :victim_work 1ms
sleep 1.2
during=$(rate calls)
sb_stop TERM
ended 0
unchanged "$pid"
sleep 0.8
after=$(rate calls)
finish calls "$pid"
more 'calls a second before' "$before" 100000
less 'calls a second during 1 ms' "$during" 1100
more 'calls a second during 1 ms' "$during" 20
more 'calls a second after' "$after" $((before / 3))

hits=$(j targets.0.hits) injected=$(j targets.0.injected_ns) mean=$(j targets.0.given_ns.mean)
same outcome "$(j targets.0.outcome)" delayed
same 'every hit is delayed' "$(j targets.0.delayed)" "$hits"
mean=${mean%.*}
more 'mean given' "$mean" 980000
less 'mean given' "$mean" 1100000
# what was injected is what was given
more injected "$injected" $((hits * 9 / 10 * 1000000))
told ':victim_work'
told jump
