#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A uprobe over a jump of sbinject's would go on in the middle of it and end the process: it is not put
# there, in whatever process the file is mapped. Where the hook stands behind the first instruction,
# both count. A breakpoint that another tool has put over a hook is left where it is, and everything
# behind it is restored.
# beside idle work
. "$SRC/test/lib.sh"
need_uprobe
need python3

cp "$V/last-byte" "$T/one"
touch "$T/gate"
start one "$T/one" 1000000000000 "$T/gate"
hooked_pid=$pid
snapshot "$pid"
attach "$pid" :last_ret 0
start other "$T/one" 1000000000000 "$T/gate"
for form in "-p $hooked_pid :last_ret" "-p $pid :last_ret" "-a $T/one:last_ret"; do
	# shellcheck disable=SC2086 # words
	refuses 3 "process $hooked_pid has it hooked" --backend uprobe $form 0 --for 300ms
done
sb_stop
ended 0
unchanged "$hooked_pid"
finish one "$hooked_pid"
finish other "$pid"

cp "$V/calls" "$T/both"
start both "$T/both" -r
attach "$pid" :victim_work 0
"$SB" --backend uprobe -p "$pid" :victim_work 0 --for 500ms --json "$T/uprobe.json" 2>"$T/uprobe.err" ||
	fail "a uprobe over a hook behind the entry: $(cat "$T/uprobe.err")"
more 'hits of the uprobe' "$("$TOOL/jget" "$T/uprobe.json" targets.0.hits)" 100
wait_for 10 test "$(rate both)" -gt 0 || fail 'the hooked process was hurt'
sb_stop
ended 0
more 'hits of the hook' "$(j targets.0.hits)" 100

# Another tool's breakpoint over the hook, at a function that is not called.
snapshot "$pid"
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
