#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# By uprobes: pid= of two; a library that is loaded later; a deleted file; list, with an IFUNC.
# beside idle work
. "$SRC/test/lib.sh"
need_uprobe

start one "$V/calls" -n 3000 -g "$T/gate" -w
one=$pid
start two "$V/calls" -n 3000 -g "$T/gate" -w
attach_told "$one,$pid" --backend uprobe :victim_work 0 "pid=$pid"
touch "$T/gate"
wait_for 20 said one '^called$' && wait_for 20 said two '^called$' || fail 'the calls were not made'
sb_stop
ended 0
finish one "$one"
finish two "$pid"
same 'hits of one process of two' "$(j targets.0.hits)" 3000

# A library that is loaded by a command that runs: armed some ms later, so most of its calls count.
sb --backend uprobe victim-lib.so:lib_fn 0 --json "$T/run.json" -- "$V/calls" -l "$V/victim-lib.so" -n 300 -p 3000000
ended 0
more 'hits of a library loaded later' "$(j targets.0.hits)" 30
less 'hits of a library loaded later' "$(j targets.0.hits)" 303

# A deleted file.
cp "$V/calls" "$T/gone"
start gone "$T/gone" -n 2000 -g "$T/gate4" -w
rm "$T/gone"
attach_told "$pid" --backend uprobe :victim_work 0
touch "$T/gate4"
wait_for 20 said gone '^called$' || fail 'the calls were not made'
sb_stop
ended 0
finish gone "$pid"
same 'hits in a deleted file' "$(j targets.0.hits)" 2000

# An IFUNC: the implementation in use, with the name that was asked for.
start ifunc "$V/calls" -l "$V/victim-lib.so"
sb list --backend uprobe -p "$pid" libc.so.6:memcpy victim-lib.so:lib_fn --json "$T/run.json"
ended 0
same mechanism "$(j targets.0.sites.0.mechanism)" uprobe
same outcome "$(j targets.1.outcome)" matched
finish ifunc "$pid"
