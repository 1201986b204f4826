#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Requests at a rate of their own: throughput says nothing and that is said; at saturation it does;
# the latency that the server publishes tells below it too.
# limit: 150 s
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"

start open "$V/sweep-shapes" open
port=$(sed -n 's/^port //p' open.out)
url="prom:http://127.0.0.1:$port/metrics#"
finds 'INVALID INCONCLUSIVE' "$pid" :crit --progress :item --time 6s
same 'exit status' "$rc" 6
finds 'CRITICAL PARTIAL' "$pid" :crit --progress "${url}app:items_total{kind=\"good\"}" \
	--response "${url}latency_seconds" --time 7s
finds 'CRITICAL PARTIAL' "$pid" :crit --progress :item --response "${url}latency_seconds" --time 7s
# A delay that makes the service longer than the time between two requests: there is no slope.
finds INVALID "$pid" :crit --progress :item --response "${url}latency_seconds" --doses 900us --time 5s
same 'saturated' "$(sj targets.0.queue.saturated) $(sj targets.0.kappa)" 'true null'
grep -q '^:crit: saturated: ' "$T/sb.out" || fail "$(cat "$T/sb.out")"
grep -q ':crit: .* in the system on average, .* completed a second' "$T/sb.out" ||
	fail "$(cat "$T/sb.out")"
let_go "$pid"
finish open "$pid"

start open "$V/sweep-shapes" open every=150
port=$(sed -n 's/^port //p' open.out)
measures 1 CRITICAL "$pid" :crit --progress "prom:http://127.0.0.1:$port/metrics#app:items_total" \
	--time 6s
finish open "$pid"
