#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# `list` of a process's Python functions leaves nothing in it: its memory does not grow with each list.
. "$SRC/test/lib.sh"
. "$SRC/test/python/pythons.sh"

cat >"$T/waits.py" <<'P'
import time
def f(): pass
print("ready", flush=True)
while True:
    f()
    time.sleep(0.01)
P
size() { awk '/^VmSize:/ { print $2 }' "/proc/$pid/status"; }
listed() {
	sb list -p "$pid" 'py:*:*'
	[ $rc -eq 0 ] && grep -q '__main__' "$T/sb.out" || fail "$p: status $rc"
}

for p in $(pythons); do
	start waits "$p" "$T/waits.py"
	listed # what the interpreter itself needs for it stays with it
	listed
	before=$(size)
	for _ in 1 2 3 4 5; do
		listed
	done
	[ $(($(size) - before)) -lt 2000 ] || fail "$p: $before kB before, $(size) after"
	kill "$pid"
done
