#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A uprobe over a jump of sbinject's would go on in the middle of it and end the process: it is not put
# there, in whatever process the file is mapped. A breakpoint that somebody else put over a hook is
# left to him, and everything behind it is restored.
. "$SRC/test/lib.sh"
need_uprobe
need python3

cp "$V/calls" "$T/both"
start both "$T/both" -r
hooked_pid=$pid
snapshot "$pid"
attach "$pid" :victim_work 0
start other "$T/both"
for form in "-p $hooked_pid :victim_work" "-p $pid :victim_work" "-a $T/both:victim_work"; do
	# shellcheck disable=SC2086 # words
	refuses 3 "process $hooked_pid has it hooked" --backend uprobe $form 0 --for 300ms
done
wait_for 10 test "$(rate both)" -gt 0 || fail 'the hooked process was hurt'
sb_stop
ended 0
unchanged "$hooked_pid"
finish other "$pid"

# Somebody's breakpoint over the hook, at a function that is not called.
pid=$hooked_pid
attach "$pid" :victim_idle 0
at=$("$TOOL/textcheck" "$pid" | grep "/both" | sed -n 's/.*(0x\([0-9a-f]*\)).*/\1/p' | head -n 1)
[ -n "$at" ] || fail "no hook found: $("$TOOL/textcheck" "$pid")"
poke() { python3 -c 'import sys
with open(f"/proc/{sys.argv[1]}/mem", "r+b", 0) as f:
    f.seek(int(sys.argv[2], 16)); f.write(bytes([int(sys.argv[3], 16)]))' "$pid" "$at" "$1"; }
first=$("$TOOL/textcheck" "$pid" | grep "(0x$at)" | sed -n 's/.*file \([0-9a-f]*\).*/\1/p')
poke cc
sb_stop
ended 0
poke "$first"
unchanged "$pid"
finish both "$pid"
