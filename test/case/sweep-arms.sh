#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two targets share blocks and their control: each is judged by itself, the plan is printed before the
# first block, and after Ctrl-C both have an interval.
# limit: 150 s
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"
[ "$(nproc)" -ge 2 ] || skip 'one processor hides nothing'

# numbers FIELD...: no null among these fields of the document
numbers() {
	local field

	for field; do
		[[ $(sj "$field") =~ ^-?[0-9.e-]+$ ]] || fail "$field is $(sj "$field"): $(cat sb.out)"
	done
}
# column NAME: its number in the CSV
column() { head -n 1 s.csv | tr , '\n' | grep -nx "$1" | cut -d: -f1; }

start hidden "$V/sweep-shapes" hidden item=2000 slack=1400 rest=1
snapshot "$pid"
finds HIDDEN "$pid" :hid :crit --progress :item --time 8s --threshold 0.2
[ "$(sj targets.1.verdict)" != HIDDEN ] || fail "the second is hidden, too: $(cat sb.out)"
numbers targets.{0,1}.kappa_ci.{0,1}
unchanged "$pid"

sb sweep -p "$pid" :hid :crit --progress :item --doses 100us,200us --time 5s --json "$T/sweep.json" \
	--csv "$T/s.csv"
grep -qE '^plan: 2 targets in the same blocks: [0-9]+ blocks of each, windows of ' sb.err ||
	fail "no plan: $(cat sb.err)"
grep -qE '^plan: :hid 100us 200us, kappa to about' sb.err || fail "no doses in the plan: $(cat sb.err)"
same 'targets in the plan' "$(sj 'plan.targets.#')" 2
same 'second in the plan' "$(sj plan.targets.1.spec)" :crit
same 'its doses' "$(sj plan.targets.1.doses_ns.1)" 200000
numbers plan.targets.{0,1}.half_width plan.window_s plan.blocks
# A whole block has two windows of SHAM, and two of each dose of both: not SHAM for each.
awk -F, -v stage="$(column stage)" -v block="$(column block)" -v arm="$(column arm)" \
	-v target="$(column target)" 'NR > 1 && $stage == "main" { n[$block]++; arms[$block, $arm]++
		gsub(/"/, "", $target)
		if ($arm == "dose") doses[$block, $target]++ }
	END { for (b in n) if (n[b] == 10 && arms[b, "sham"] == 2 && doses[b, ":hid"] == 4 &&
			doses[b, ":crit"] == 4) whole++
		exit !(whole >= 2) }' s.csv || fail "no blocks that both share: $(cat s.csv)"
unchanged "$pid"

sb_start sweep -p "$pid" :hid :crit --progress :item --doses 100us,200us --time 20s --json "$T/sweep.json" \
	--events "$T/ev"
wait_for 40 grep -q '"stage":"main".*"block":6' ev || fail "no seventh block: $(tail -n 1 ev)"
sb_stop INT
[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "status $rc after Ctrl-C: $(cat sb.err)"
same 'ended early' "$(sj ended_early)" true
numbers targets.{0,1}.kappa_ci.{0,1}
unchanged "$pid"
finish hidden "$pid"
