#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Far more threads than processors are in the midst of their delays when sbinject leaves: each delayed
# call counts with what it was given, not with the time that its thread waited for a processor.
. "$SRC/test/lib.sh"

start calls "$V/calls" -t 32 -p 1000
snapshot "$pid"
attach "$pid" :victim_work 50us
sleep 1
sb_stop
# With so many threads sbinject itself may have to wait for a processor: then it tells.
[ "$rc" -eq 0 ] || told 'lease lapsed'
unchanged "$pid"
finish calls "$pid"
delayed=$(j targets.0.delayed) injected=$(j targets.0.injected_ns) mean=$(j targets.0.given_ns.mean)
mean=${mean%.*}
more 'delayed calls' "$delayed" 100
less 'injected' "$injected" $((delayed * 50500))
more 'injected, but for calls that were cut short' "$injected" $((delayed * 45000))
less 'the mean of what was given' "$mean" 50500
# of one population: their mean is what was injected over how many were delayed
less 'mean x delayed, off what was injected' $(((mean + 1) * delayed - injected)) $((2 * delayed))
more 'mean x delayed, off what was injected' $(((mean + 1) * delayed - injected)) -1
