#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Of what is called 25 000 times an item, the smallest delay of each call is too much: the reason names
# an N. With each Nth call delayed, what every item passes through is critical, and what is called as
# often beside the item is hidden; calls in between cost the same with a delay and without.
# limit: 180 s
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"
[ "$(nproc)" -ge 2 ] || skip 'one processor hides nothing'

TRY_AGAIN_S=25
each=(--progress :item --time 6s --threshold 0.3 --max-slowdown 45%)

# What holds for each sweep with every=, also for one that noise makes INCONCLUSIVE.
every=
eval "plain_$(declare -f sweep)"
sweep() {
	plain_sweep "$@" --csv "$T/often.csv"
	[ "$every" ] || return 0
	[[ $(sj targets.0.reason) != *'called so often'* ]] || fail "$every: $(sj targets.0.reason)"
	awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
		$c["arm"] == "sham" && $c["stage"] == "main" { n++; given += $c["x_ns"] > 0 }
		END { exit given < n }' often.csv || fail 'without a delay calls are not counted in the same way'
}

start often "$V/sweep-shapes" often
snapshot "$pid"

# Where others keep the machine busy, an item may be so long that a delay of each call is not too much.
sweep "$pid" :busy :idle --progress :item --time 3s
[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "exit status $rc"
for n in 0 1; do
	! awk -v t="$(sj targets.$n.t0_ns)" 'BEGIN { exit !(t + 0 > 3.2e6) }' || skip 'too noisy a machine: items are too long'
	same 'the verdict, each call delayed' "$(sj targets.$n.verdict)" INCONCLUSIVE
	reason=$(sj targets.$n.reason)
	[[ $reason =~ ^called\ so\ often.*:\ use\ (every=[0-9]+)$ ]] || fail "reason: $reason"
	same 'the remedy' "$(sj targets.$n.remedy.option)=$(sj targets.$n.remedy.value)" "${BASH_REMATCH[1]}"
done
every=${BASH_REMATCH[1]}
more 'the N' "${every#every=}" 15 # the smallest dose is a sixteenth of the largest
less 'the N' "${every#every=}" 129
unchanged "$pid"

measures 1 CRITICAL "$pid" :busy "$every" :idle "$every" "${each[@]}"
for n in 0 1; do
	awk -v h="$(sj targets.$n.hits_per_item)" 'BEGIN { exit !(h > 23000 && h < 27000) }' ||
		fail "hits per item: $(sj targets.$n.hits_per_item), not 25000"
done
case $(sj targets.1.verdict) in
HIDDEN) ;;
INCONCLUSIVE | PARTIAL) finds HIDDEN "$pid" :idle "$every" "${each[@]}" ;;
*) fail "what is beside the item is $(sj targets.1.verdict)" ;;
esac
unchanged "$pid"
finish often "$pid"
