#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Malformed targets, delays, keys; the same target twice: status 2, before anything.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls"
snapshot "$pid" -t
refuses 2 'nocolon' -p "$pid" nocolon
refuses 2 'symbol|target' -p "$pid" libc.so.6:
refuses 2 'unit' -p "$pid" :victim_work 5
refuses 2 'unit' -p "$pid" :victim_work 5.5
refuses 2 '10 ?s' -p "$pid" :victim_work 11s
refuses 2 'negative|delay' -p "$pid" :victim_work -5us
refuses 2 'delay|unit' -p "$pid" :victim_work 5parsecs
refuses 2 'delay' -p "$pid" :victim_work 1us 2us
refuses 2 'delay|target' -p "$pid" 5us :victim_work
refuses 2 'evry' -p "$pid" :victim_work 1us evry=2
refuses 2 'every' -p "$pid" :victim_work 1us every=0
refuses 2 'every' -p "$pid" :victim_work 1us every=x
refuses 2 'start' -p "$pid" :victim_work 1us start=soon
refuses 2 'for' -p "$pid" :victim_work 1us for=
refuses 2 'pid' -p "$pid" :victim_work 1us pid=-1
refuses 2 'twice|same' -p "$pid" :victim_work 1us :victim_work 2us
refuses 2 'line|:@' -p "$pid" :@calls.c 1us
refuses 2 'line|:@' -p "$pid" :@calls.c:zero 1us
refuses 2 'mechanism' -p "$pid" :victim_work 1us --mechanism magic
refuses 2 'backend' -p "$pid" :victim_work 1us --backend magic
refuses 2 'for|time|unit' -p "$pid" :victim_work 1us --for soon
refuses 2 'slowdown|%' -p "$pid" :victim_work 1us --max-slowdown much
refuses 2 'tag' -p "$pid" :victim_work 1us --tag novalue
unchanged "$pid" -t
# the same limits in launch mode are sbinject's own failure
refuses 125 'unit' :victim_work 5 -- true
finish calls "$pid"
