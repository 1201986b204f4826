#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A target that ptrace is refused: auto takes uprobes, says why, counts all, and the process that traces it
# goes on undisturbed.
# beside others
. "$SRC/test/lib.sh"
need_uprobe

start calls "$V/calls" -t 2 -n 5000 -g "$T/gate" -w
target=$pid
start tracer "$V/odd" tracer "$target"
attach_told "$target" :victim_work 20us
grep -q "^TracerPid:	$pid\$" "/proc/$target/status" || fail 'its tracer has lost it'
touch "$T/gate"
wait_for 30 said calls '^called$' || fail 'the calls were not made'
sb_stop
ended 0
told 'traced already'
told 'backend uprobe'
same hits "$(j targets.0.hits)" 10000
same delayed "$(j targets.0.delayed)" 10000
same backend "$(j backend)" uprobe
"$TOOL/textcheck" "$target" >"$T/text" || fail "its text differs: $(cat "$T/text")"
finish tracer "$pid"
finish calls "$target"

# What uprobes cannot do is not handed to them: the reason stays the process's.
start calls "$V/calls"
target=$pid
start tracer "$V/odd" tracer "$target"
refuses 4 'traced' -p "$target" :victim_work 20ms
refuses 4 'traced' trace -p "$target" :victim_work
finish tracer "$pid"
finish calls "$target"

# Nor what has more capabilities than we: where its functions are cannot be read either.
if command -v setpriv >/dev/null; then
	start calls "$V/calls"
	less=-sys_ptrace,-sys_resource rc=0
	setpriv --inh-caps "$less" --bounding-set "$less" "$SB" -p "$pid" :victim_work 5us --for 1ms \
		2>sb.err || rc=$?
	ended 4
	told 'read its memory'
	! grep 'taking' sb.err || fail 'uprobes were taken'
	finish calls "$pid"
fi

# Where it can be traced, auto is inject.
start calls "$V/calls"
sb -p "$pid" :victim_work 1us --for 50ms --json "$T/run.json"
ended 0
same backend "$(j backend)" inject
finish calls "$pid"
