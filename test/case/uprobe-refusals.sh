#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What uprobes cannot do is refused beforehand, with the reason and the backend that can.
# beside others
# quick
. "$SRC/test/lib.sh"
need_uprobe

start calls "$V/calls"
refuses 2 'above 10 ms.*neither killed nor preempted' -p "$pid" --backend uprobe :victim_work 20ms
refuses 2 'Python' -p "$pid" --backend uprobe 'py:a:b' 1us
refuses 2 'thread=' -p "$pid" --backend uprobe :victim_work 1us thread=work-0
refuses 2 'cannot measure how long calls take' -p "$pid" --backend uprobe :victim_work time=yes
told 'inject can'
refuses 2 'cannot measure' trace -p "$pid" --backend uprobe :victim_work
refuses 2 'cannot measure' -a "$V/calls:victim_work" time=yes
told 'inject can: name the processes'
refuses 2 'mechanism' -p "$pid" --backend uprobe --mechanism int3 :victim_work 1us
refuses 3 'entries of functions only' -p "$pid" --backend uprobe ':victim_work+0x4' 1us
refuses 3 "no.*'victim_nothing'|victim_nothing" -p "$pid" --backend uprobe :victim_nothing 1us
refuses 5 'no such process' -p 999999999 --backend uprobe :victim_work 1us
refuses 2 'all.*uprobe' -a --backend inject :victim_work 1us
refuses 2 'exclude each other' -a -p "$pid" :victim_work 1us
refuses 3 'absolute path' -a no-such-module-anywhere.so:f 1us
refuses 3 'ls.*no function|no_such_function' -a /bin/ls:no_such_function 1us
let_go "$pid"
finish calls "$pid"
