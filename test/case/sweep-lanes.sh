#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A delay in processes side by side is felt once and not by their number; one under a lock that all
# wait for is felt by each of them; a part of the calls on the way is felt in part.
# limit: 150 s
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"
[ "$(nproc)" -ge 2 ] || skip 'one processor has no lanes'

try() { # SHAPE FUNCTION VERDICTS
	local t

	start "$1" "$V/sweep-shapes" "$1"
	t=$(truth "$1" "$2")
	measures "$t" "$3" "$pid" ":$2" --progress :item --time 6s
	let_go "$pid"
	finish "$1" "$pid"
}

try ranks crit 'CRITICAL PARTIAL'
same lanes "$(sj gates.lanes)" 2
try convoy crit CRITICAL
try partial part PARTIAL
