#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An interpreter that ends while its doorbell is answered: the session sees its end when it borrows
# the thread that rings, and goes on with what it held of the process, which has been forgotten.
# limit: 300 s
. "$SRC/test/fault/walk.bash"
need_python

for point in call-start call-entered call-left room-map ring; do
	for nth in 1 3 6 9 12 15; do
		run "$point:$nth=kill-target" py:__main__:nothing 0 -- "${python[0]}" -c 'pass'
		! grep 'tracer died' "$T/sb.err" || fail "$point:$nth: the tracer died"
		[ "$rc" -eq 137 ] || [ "$rc" -eq 0 ] || fail "$point:$nth: status $rc: $(cat "$T/sb.err")"
		[ "$rc" -ne 0 ] || break
	done
done
