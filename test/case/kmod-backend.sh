#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --backend kmod on a folder that stands for the module's: what it cannot do is refused, and what it
# cannot know is not made up. Against the real module: kmod-emulator.sh.
. "$SRC/test/lib.sh"
need_root

start calls "$V/calls"
refuses 4 'not loaded' --backend kmod -p "$pid" :victim_work 1us
export SBINJECT_KMOD_DIR=$T/speed_bump
mkdir "$SBINJECT_KMOD_DIR"
cd "$SBINJECT_KMOD_DIR" && touch targets targets_list && echo 0 >enabled && echo 1000000 >default_delay_ns
printf 'enabled: 0\ntargets: 2\ntotal_hits: 0\ntotal_delay_ns: 0\n' >stats
refuses 1 'in use.*2 targets|clear' --backend kmod -p "$pid" :victim_work 1us
printf 'enabled: 0\ntargets: 0\ntotal_hits: 0\ntotal_delay_ns: 0\n' >stats
refuses 2 'every=' --backend kmod -p "$pid" :victim_work 1us every=3
refuses 2 'thread=' --backend kmod -p "$pid" :victim_work 1us thread=x
refuses 2 'cannot measure how long' --backend kmod -p "$pid" :victim_work 1us time=yes
refuses 2 'Python' --backend kmod -p "$pid" py:a:b 1us
refuses 2 'one -p' --backend kmod -p "$pid,$$" :victim_work 1us
refuses 2 'max-slowdown' --backend kmod -p "$pid" :victim_work 1us --max-slowdown 10%
refuses 3 'victim_nothing' --backend kmod -p "$pid" :victim_nothing 1us
refuses 2 'path' --backend kmod -a libc.so.6:getpid 1us

sb --backend kmod -p "$pid" ':victim_i*' 5us --for 100ms --json "$T/run.json"
ended 0
grep -q "^-$V/calls:victim_idle" targets || fail "the last command: $(cat targets)" # over the longer first one
same 'enabled at the end' "$(cat enabled | head -c 1)" 0
same backend "$(j backend)" kmod
same mechanism "$(j targets.0.sites.0.mechanism)" kmod
same symbol "$(j targets.0.sites.0.symbol)" victim_idle
same 'what cannot be known' "$(j targets.0.given_ns.mean)" null
finish calls "$pid"
