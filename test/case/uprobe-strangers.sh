#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A uprobe of another tool on a library is no change of a target, as tests compare it; a breakpoint
# and a jump of sbinject's there are.
# beside idle work
. "$SRC/test/lib.sh"
need_uprobe

# It is never called: no process on the machine is delayed by this test.
libc=$(sed -n 's,.* \(/.*/libc\.so\.6\)$,\1,p' /proc/self/maps | head -n 1)
start calls "$V/calls" -p 2000
target=$pid
rm -f "$T/told"
sb_start --backend uprobe -a "$libc:lcong48_r" 0 --status-fd 9 9>"$T/told"
wait_for 20 grep -q '^attached' "$T/told" || fail 'no uprobe'
"$TOOL/textcheck" "$target" >"$T/text" || fail "a uprobe of another session: $(cat "$T/text")"
V='' "$TOOL/textcheck" "$target" >"$T/text" && fail 'there is no uprobe in the target'
sb_stop
snapshot "$target"
for mechanism in jump int3; do
	attach_told "$target" libc.so.6:clock_nanosleep 0 --mechanism $mechanism
	"$TOOL/textcheck" "$target" | grep -q /libc.so.6 || fail "$mechanism: not seen"
	sb_stop
	ended 0
done
unchanged "$target"
finish calls "$target"
