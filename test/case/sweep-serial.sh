#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What every item passes through is critical, and the same seed means the same order; every form of
# output says the same, and the target is left as it was.
# limit: 90 s
# beside idle work
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"

start serial "$V/sweep-shapes" serial item=1000 rest=1
snapshot "$pid"
measures 1 CRITICAL "$pid" :crit --progress :item --time 6s --csv "$T/s.csv" --html "$T/s.html" \
	--events "$T/s.ev"
unchanged "$pid"
same schema "$(sj schema)" sbinject.sweep/1
same 'hits an item' "$(sj targets.0.hits_per_item | cut -c1-3 | sed 's/0.9/1.0/')" 1.0
same 'windows in the CSV' "$(($(wc -l <s.csv) - 1))" "$(sj 'windows.#')"
[ "$(wc -l <s.ev)" -ge "$(sj 'windows.#')" ] || fail 'fewer events than windows'
"$TOOL/jget" -l s.ev 0.arm >/dev/null || fail "an event is no JSON: $(head -n 1 s.ev)"
grep -q '</html>' s.html || fail 'the page has no end'
! grep -qE '(src|href)="?https?:' s.html || fail 'the page needs something from elsewhere'
grep -q "seed $(sj seed)" sb.out || fail 'the seed is not shown'
finish serial "$pid"

# An order by the seed: the arms of the first blocks come in the same order twice. (How many windows in
# a row an arm has follows from the noise.)
arms() { awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) { c[$i] = i } next }
	$c["stage"] == "main" { arm = $c["arm"] $c["dose"] }
	$c["stage"] == "main" && arm != last && n++ < 8 { print last = arm }' "$1"; }
start serial "$V/sweep-shapes" serial
snapshot "$pid"
for run in a b; do
	sweep "$pid" :crit --progress :item --doses 40us,80us --time 3s --seed 7 --csv "$T/$run.csv"
done
[ -n "$(arms a.csv)" ] || fail 'no main blocks'
same 'order by one seed' "$(arms a.csv)" "$(arms b.csv)"
unchanged "$pid"
finish serial "$pid"
