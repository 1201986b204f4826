#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The gain ceiling of a native function is what its removal then really brings, and the largest one
# comes first.
# limit: 240 s
# beside idle work
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"

# within WHAT GOT LOW HIGH
within() {
	awk -v g="$2" -v l="$3" -v h="$4" 'BEGIN { exit !(g >= l && g <= h) }' || fail "$1: $2, not $3 to $4"
}

ceilings() {
	start gain "$V/gain"
	snapshot "$pid"
	sweep "$pid" :parse :work --progress :item --time 8s --doses 5us,20us
	[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "exit status $rc"
	unchanged "$pid"
	kill "$pid"
	wait "$pid" || true
	[ "$(sj targets.0.verdict) $(sj targets.1.verdict)" = 'CRITICAL CRITICAL' ]
}
for try in 1 2 3 4; do
	ceilings && break
	tried CRITICAL
	quiet_enough "$(cat sb.out)"
	[ $try -lt 4 ] || fail "parse() and work() are not critical: $(cat sb.out)"
done
same 'the order of the table' "$(awk '/^:/ { print $1 } /^making/ { exit }' sb.out | tr '\n' ' ')" ':work :parse '
grep -q '^making :parse free would save at most .*us of .*us an item (.* %)$' sb.out || fail "no sentence: $(cat sb.out)"

# What parse() really costs: items with and without it, in turns.
for _ in 1 2 3 4 5; do
	"$V/gain" 1 | tail -n 1 >>with
	"$V/gain" 1 0 | tail -n 1 >>without
done
gain=$(paste <(sort -n with) <(sort -n without) | awk 'NR == 2 { print $1 - $2 }')
echo "parse: ceiling $(sj targets.0.gain_ceiling_ns) ns, gain $gain ns"
within 'the ceiling of parse, of the real gain' "$(sj targets.0.gain_ceiling_ns)" \
	"$(awk -v g="$gain" 'BEGIN { print 0.7 * g }')" "$(awk -v g="$gain" 'BEGIN { print 1.4 * g }')"
within 'the time of parse' "$(sj targets.0.inclusive_ns)" 57000 80000

