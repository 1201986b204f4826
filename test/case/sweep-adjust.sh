#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Items of different sizes, known by the calls of a function: adjusted for them, intervals are
# narrower and hold the truth. A count that follows the program's speed is named and not used.
# limit: 120 s
# beside idle work
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"

start mixed "$V/sweep-shapes" mixed
for try in 1 2 3 4; do
	sweep "$pid" :crit --progress :item --adjust :token --adjust rate::item --time $((5 * try))s \
		--seed "$try" --csv "$T/sweep.csv"
	[ "$(sj adjust.0.used)" = true ] && [ "$(sj adjust.1.used)" = false ] && holds 0 1 &&
		awk -v w="$(sj targets.0.adjusted_width)" 'BEGIN { exit !(w < 0.8) }' && break
	tried CRITICAL
	quiet_enough "not adjusted: $(grep adjust "$T/sb.out")"
	[ "$try" -lt 4 ] || give_up "not adjusted: $(grep adjust "$T/sb.out")"
done
same 'source' "$(sj adjust.0.source)" :token
same 'per' "$(sj adjust.0.per) $(sj adjust.1.per)" 'item s'
[ "$(sj adjust.1.used_reason)" != null ] || fail 'no reason'
[ "$(sj targets.0.kappa_unadjusted)" != null ] || fail 'no kappa without adjusting'
awk -v b="$(sj adjust.0.slope_ns)" 'BEGIN { exit !(b > 25e3 && b < 100e3) }' ||
	fail "a token of 50 us: $(cat "$T/sb.out")"
grep -q '^adjusted for :token: .* per item' "$T/sb.out" || fail "$(cat "$T/sb.out")"
grep -q '^not adjusted for rate::item: ' "$T/sb.out" || fail "$(cat "$T/sb.out")"
grep -q 'kappa without adjusting .* as wide' "$T/sb.out" || fail "$(cat "$T/sb.out")"
head -n 1 "$T/sweep.csv" | grep -q ',response_count,adjust_1,adjust_2,' || fail 'no columns'
[ "$(sj windows.9.adjust.0)" != null ] || fail 'no amounts'

no() { refuses "$1" "$2" sweep -q -p "$pid" :crit --progress :item --time 4s "${@:3}"; }
no 2 'at most 4' --adjust :a --adjust :b --adjust :c --adjust :d --adjust :e
no 2 'no source' --adjust 'stdout:x'
no 1 'no such file' --adjust file:/nonexistent
refuses 2 'not in runs' sweep -q :crit --runs 3 --adjust :token -- true
let_go "$pid"
finish mixed "$pid"
