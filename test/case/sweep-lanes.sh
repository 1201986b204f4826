#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A delay in processes or threads side by side is felt once and not by their number, as is one in
# processes one after another and under a lock at which threads take turns; one under a lock that
# processes poll is felt by each of them; a part of the calls on the way is felt in part. Where it
# is not to be seen whether threads are side by side, there is no verdict.
# limit: 240 s
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"
TRY_AGAIN_S=120 # eight sweeps
[ "$(nproc)" -ge 2 ] || skip 'one processor has no lanes'

try() { # SHAPE FUNCTION VERDICTS [NAME=VALUE...]
	local t

	start "$1" "$V/sweep-shapes" "$1" "${@:4}"
	t=$(truth "$1" "$2")
	measures "$t" "$3" "$pid" ":$2" --progress :item --time "${time:-5s}"
	let_go "$pid"
	finish "$1" "$pid"
}

try ranks crit 'CRITICAL PARTIAL'
same lanes "$(sj gates.lanes)" 2
time=12s try convoy crit CRITICAL # few windows fit: each waits long for the lock
time=9s try partial part PARTIAL
try threads crit 'CRITICAL PARTIAL' workers=4 item=4000
same lanes "$(sj gates.lanes)" 4
try lock crit CRITICAL
same lanes "$(sj gates.lanes)" 1
try successive crit CRITICAL
same lanes "$(sj gates.lanes)" 1

start timer "$V/sweep-shapes" threads workers=4 item=4000 timer=1
for _ in 1 2 3; do # one in a hundred is taken for late, which goes before it
	finds INCONCLUSIVE "$pid" :crit --progress :item --time "${time:-5s}"
	same 'it is clear' "$(sj targets.0.lanes_unclear)" true
	[[ $(sj targets.0.reason) != *'--lane thread'* ]] || break
	time=7s
done
[[ $(sj targets.0.reason) == *'--lane thread'* ]] || fail "reason: $(sj targets.0.reason)"
finds 'CRITICAL PARTIAL' "$pid" :crit --progress :item --time 5s --lane thread
holds 0 1 || fail "the interval does not hold 1: $(cat "$T/sb.out")"
let_go "$pid"
finish timer "$pid"
