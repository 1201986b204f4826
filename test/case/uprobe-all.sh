#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# -a arms a file before any process runs it, for all: processes that start later, by whichever
# process, are counted from their first call on, with a row each; pid= limits it to a tree; sbinject
# itself is not counted.
# beside idle work
. "$SRC/test/lib.sh"
need_uprobe

cp "$V/calls" "$T/early"
sb_start -a "$T/early:victim_work" 1us --json "$T/run.json" --status-fd 3 3>"$T/status"
wait_for 20 grep -q attached "$T/status" || fail 'nothing was armed'
for i in 1 2 3; do
	"$T/early" -n 1000 >"$T/early$i.out" || fail "the victim ended with status $?"
done
sb_stop
ended 0
same hits "$(j targets.0.hits)" 3000
same delayed "$(j targets.0.delayed)" 3000
same rows "$(j processes.#)" 3
for i in 0 1 2; do
	same "hits of process $i" "$(j processes.$i.targets.0.hits)" 1000
done
same module "$(j targets.0.sites.0.module)" "$T/early"

# A command at the end: for as long as it runs. One of two is meant.
start early "$T/early" -n 2000 -g "$T/gate" -w
first=$pid
start other "$T/early" -n 2000 -g "$T/gate" -w
sb -a "$T/early:victim_work" 0 pid="$first" --json "$T/run.json" -- \
	sh -c "touch '$T/gate'; until [ \$(cat '$T/early.out' '$T/other.out' | grep -c called) = 2 ]
		do sleep 0.1; done"
ended 0
finish early "$first"
finish other "$pid"
same 'hits of one of two' "$(j targets.0.hits)" 2000
same rows "$(j processes.#)" 1
same pid "$(j processes.0.pid)" "$first"

# A library by its name, as a process has it mapped; its hits in sbinject are not counted.
sb -a libc.so.6:getppid 0 --json "$T/run.json" -- "$BASH" -c 'exit 0'
ended 0
n=$(j processes.#)
for ((i = 0; i < n; i++)); do
	[ "$(j "processes.$i.comm")" != sbinject ] || fail 'sbinject counts itself'
done

# A file that is no program is not called absent.
sb -a /etc/passwd:f 0 --for 1ms
[ "$rc" -ne 0 ] && told 'not an ELF file' || fail "no program: $rc, $(cat "$T/sb.err")"
sb_start -a "$T/early:victim_work" 0 --status-fd 3 3>"$T/status2"
wait_for 20 grep -q attached "$T/status2" || fail 'nothing was armed'
! "$CTL" add /etc/passwd:f 2>"$T/ctl.err" && grep -q '^sbctl: ENOEXEC: ' "$T/ctl.err" || fail "sbctl: $(cat "$T/ctl.err")"
sb_stop
