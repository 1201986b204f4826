#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A counter that is published ten times a second, or each 0.3 s: windows begin and end at its changes, and
# one period is a window where time is short: there is an interval after as many as sixty. So is one that
# grows a little in between.
# limit: 240 s
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"

half() {
	awk -v lo="$(sj targets.0.kappa_ci.0)" -v hi="$(sj targets.0.kappa_ci.1)" 'BEGIN { print (hi - lo) / 2 }'
}

start tenth "$V/sweep-shapes" serial publish=100
measures 1 'CRITICAL PARTIAL INCONCLUSIVE' "$pid" :crit --progress "file:$T/published" --time 8s
awk -v h="$(half)" 'BEGIN { exit !(h < 0.5) }' || fail "half-width $(half): $(cat "$T/sb.out")"
awk -v p="$(sj period_ns)" 'BEGIN { exit !(p > 9e7 && p < 11e7) }' || fail "period $(sj period_ns)"
let_go "$pid"
finish tenth "$pid"

# A database brings its statistics up to date at intervals, and counts each query for them at once.
cat >statistics <<'END'
read -r published <published
queries=$(($(cat queries) + 1))
echo $queries >queries
echo $((10#$published + queries))
END
echo 0 >queries
start fourth "$V/sweep-shapes" serial publish=300
args=("$pid" :crit --progress 'cmd:bash ./statistics' --time 16s)
for try in 1 2 3; do # what a busy machine takes of the time, the next has more of
	sweep "${args[@]}" --seed $try
	awk -v p="$(sj period_ns)" 'BEGIN { exit !(p > 27e7 && p < 33e7) }' &&
		[ "$(sj targets.0.kappa_ci.0)" != null ] && holds 0 1 && break
	[ $try -lt 3 ] || fail "period $(sj period_ns): $(cat "$T/sb.out")"
	tried CRITICAL
	quiet_enough "$(verdict), period $(sj period_ns)"
	longer "${args[@]}"
done
more 'blocks' "$(sj targets.0.blocks)" 1
let_go "$pid"
finish fourth "$pid"
