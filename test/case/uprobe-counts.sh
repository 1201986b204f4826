#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# By uprobes: hits == calls, exactly, of one thread and of four; no process is stopped or traced.
# beside others
# quick
. "$SRC/test/lib.sh"
need_uprobe

for threads in 1 4; do
	start calls "$V/calls" -t $threads -n $((40000 / threads)) -g "$T/gate" -w
	attach_told "$pid" --backend uprobe :victim_work 0
	grep -q '^TracerPid:	0$' "/proc/$pid/status" || fail 'it is traced'
	touch "$T/gate"
	wait_for 40 said calls '^called$' || fail 'the calls were not made'
	sb_stop INT
	ended 0
	let_go "$pid"
	finish calls "$pid"
	rm "$T/gate"
	same "hits of $threads threads" "$(j targets.0.hits)" "$(calls calls victim_work)"
	same 'hits of the process' "$(j processes.0.targets.0.hits)" "$(calls calls victim_work)"
	same outcome "$(j targets.0.outcome)" counted
	same delayed "$(j targets.0.delayed)" 0
	same injected "$(j targets.0.injected_ns)" 0
	same backend "$(j backend)" uprobe
	same mechanism "$(j targets.0.sites.0.mechanism)" uprobe
	same 'time held' "$(j stop_us.attach)" 0
done
