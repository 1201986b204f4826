#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a delay changes of p50, p90 and p99 of a response: part() is called by one request of 20, the
# slow one. Its delay moves p99 by 20 times what the mean moves by, and p50 not at all. By timed
# calls and by a published histogram, whose wide buckets are no figure.
# limit: 200 s
# beside idle work, two at a time
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"

# near QUANTILE OF WHAT: the interval per ns injected, of a target, holds it, or misses it by less
# than a quarter of its width
near() {
	local lo hi

	lo=$(sj "targets.$2.quantiles.$1.per_injected_ci.0")
	hi=$(sj "targets.$2.quantiles.$1.per_injected_ci.1")
	[ "$lo" != null ] && [ "$hi" != null ] || return 1
	awk -v lo="$lo" -v hi="$hi" -v k="$3" \
		'BEGIN { s = (hi - lo) / 4; exit !(lo - s <= k && k <= hi + s) }'
}
known() { [ "$(sj "targets.$2.quantiles.$1.per_injected")" != null ]; }

start slow-few "$V/sweep-shapes" slow-few
url="prom:http://127.0.0.1:$(sed -n 's/^port //p' slow-few.out)/metrics#latency_seconds"

for try in 1 2 3; do
	sweep "$pid" :part :crit --progress :item --response :request --time $((6 * try + 6))s \
		--seed "$try"
	near 2 0 20 && known 2 0 && near 0 0 0 && ! known 0 0 && near 0 1 1 && known 0 1 && break
	[ "$try" -lt 3 ] || fail "quantiles of timed calls: $(cat "$T/sb.out")"
done
grep -Eq 'p50: between .*(that bucket does|these buckets do) not resolve' "$T/sb.out" ||
	fail "$(cat "$T/sb.out")"
same 'unit' "$(sj unit)" response
[[ $(sj targets.0.quantiles.1.share) == 0.9* ]] || fail 'share'

for try in 1 2 3; do
	sweep "$pid" :part --progress :item --response "$url" --time $((6 * try))s
	same 'unit' "$(sj unit)" response
	[ "$(sj targets.0.quantiles.0.sham_bucket_ns.0)" != null ] && break
	[ "$try" -lt 3 ] || fail "a published histogram: $(cat "$T/sb.out")"
done
same 'bucket' "$(sj targets.0.quantiles.0.sham_bucket_ns.0)" 100000.0
known 0 0 && fail "p50 of wide buckets: $(cat "$T/sb.out")"
grep -q 'p50: between 100us and 300us .*not resolve the change; .* longer than' "$T/sb.out" ||
	fail "$(cat "$T/sb.out")"

# The verdict of a quantile: that of p99 is about the slow requests, that of p50 is not.
finds CRITICAL "$pid" :part --progress :item --response :request --quantile p99 \
	--doses 2ms --time 6s
same 'quantile' "$(sj quantile)" 0.98999999999999999
awk -v k="$(sj targets.0.kappa)" -v m="$(sj targets.0.mean.per_injected)" \
	'BEGIN { exit !(k > 8 && m < 3) }' || fail "kappa of p99: $(cat "$T/sb.out")"
grep -q 'kappa, verdict and gain ceiling are of p99' "$T/sb.out" || fail "$(cat "$T/sb.out")"
refuses 2 'of a response' sweep -q -p "$pid" :part --progress :item --quantile p99
refuses 2 'not adjusted' sweep -q -p "$pid" :part --progress :item --response :request \
	--quantile p99 --adjust :crit
refuses 2 'p50, p90 or p99' sweep -q -p "$pid" :part --progress :item --quantile 99

# The progress function may be the response, too; a swept one may not.
for try in 1 2 3; do
	sweep "$pid" :part --progress :request --response :request --time $((6 * try))s
	[ "$(sj targets.0.quantiles.1.sham_ns)" != null ] && break
	[ "$try" -lt 3 ] || fail "the progress function's calls: $(cat "$T/sb.out")"
done
refuses 2 'a target is no response' sweep -q -p "$pid" :crit --progress :item --response :crit
refuses 2 'not in runs' sweep -q :crit --runs 3 --response "$url" -- true
refuses 1 'no call of .:never. was made' sweep -q -p "$pid" :crit --progress :item \
	--response :never --time 4s
let_go "$pid"
finish slow-few "$pid"
