#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# sbctl add of a preset's word adds the rows that the program has; what counts from then on is what the
# driver counts. A second time there is nothing to add, and a word of which nothing is there adds nothing.
# beside others
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"
log() { sed -n "s/^calls $1 //p" "$T/cuda.out"; }

start cuda "$V/cuda" -t 4 -n 50 -g "$T/gate" "$V/libcuda.so.1"
attach "$pid" libc.so.6:getpid 0
await_session
"$CTL" add cuda:launch 0 >ctl.out 2>&1 || fail "add: $(cat ctl.out)"
grep -Eq '^Added target: cuda:launch \(functions: [1-9][0-9]* of [1-9][0-9]*\)$' ctl.out || fail "add: $(cat ctl.out)"
n=$(sed -n 's/.*functions: \([0-9]*\) .*/\1/p' ctl.out)
! "$CTL" add cuda:launch 0 >ctl.out 2>&1 || fail "added twice: $(cat ctl.out)"
grep -qi 'already' ctl.out || fail "the second time: $(cat ctl.out)"
"$CTL" --json add cuda:sync 0 >ctl.json || fail "add: $(cat ctl.json)"
[ "$("$TOOL/jget" ctl.json indexes.#)" -ge 2 ] || fail "indexes: $(cat ctl.json)"
touch "$T/gate"
wait_for 60 said cuda '^self-check ok$' || fail "the program: $(cat "$T/cuda.out")"
sb_wait
ended 0
hits() { # TARGET: of all versions
	python3 - run.json "$1" <<'P'
import json, sys
print(sum(t["hits"] for t in json.load(open(sys.argv[1]))["targets"] if t["spec"] == sys.argv[2]))
P
}
same launches "$(hits cuda:cuLaunchKernel)" "$(log cuLaunchKernel)"
same waits "$(hits cuda:cuStreamSynchronize)" "$(log cuStreamSynchronize)"
same 'targets of the session' "$(j targets.#)" $((1 + n + $("$TOOL/jget" ctl.json indexes.#)))

# Pending, where the library is not there: a list waits, as one target does.
start calls "$V/calls" -p 2000
attach "$pid" :victim_work 0
await_session
"$CTL" add nccl 0 >ctl.out 2>&1 || fail "add: $(cat ctl.out)"
grep -q 'is pending' ctl.out || fail "not pending: $(cat ctl.out)"
sb_stop
ended 0
finish calls "$pid"
