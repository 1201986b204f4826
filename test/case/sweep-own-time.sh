#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The gain ceiling of a Python function is kappa times its own time an item, which is what the program
# measures itself in the very same moments: recursion once, exceptions, generators only while they run.
# limit: 240 s
# beside idle work
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"
need_python versions
python=("${python[0]}" "${python[-1]}") # calls are seen in one way before 3.12, in another since

# stretch NAME: own time an item of rec (3) or steps (4), by the program's log, while calls were timed
stretch() {
	awk -v column="$1" '
		FNR == NR {
			match($0, /"monotonic_s":[0-9.]*/)
			at = substr($0, RSTART + 14, RLENGTH - 14)
			if (/"stage":"own time"/) { if (!from) from = at; last = 1 }
			else if (last) { to = at; last = 0 }
			next
		}
		$1 >= from && !begun { begun = 1; items = $2; ns = $column }
		$1 <= to { end_items = $2; end_ns = $column }
		END { if (end_items > items) printf "%.0f\n", (end_ns - ns) / (end_items - items) }' own.ev own.log
}

# about WHAT GOT WANT SHARE
about() {
	awk -v g="$2" -v w="$3" -v s="$4" 'BEGIN { exit !(w > 0 && g >= (1 - s) * w && g <= (1 + s) * w) }'
}

for p in "${python[@]}"; do
	start own "$p" "$SRC/test/victim/python/sweep.py" own "$T/own.log"
	snapshot "$pid"
	for try in 1 2 3; do
		sweep "$pid" 'py:__main__:rec' 'py:__main__:steps' resume=yes --progress py:__main__:item \
			--time 6s --events "$T/own.ev"
		[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "$p: exit status $rc"
		right=0
		for n in 0 1; do
			want=$(stretch $((n + 3))) got=$(sj "targets.$n.inclusive_ns")
			[ "$got" != null ] || fail "$p: no own time: $(sj "targets.$n.inclusive_ns_reason")"
			about "own time" "$got" "$want" 0.3 && right=$((right + 1))
			echo "$p: $(sj "targets.$n.spec"): $got ns an item, of $want"
		done
		[ $right -eq 2 ] && break
		[ "$try" -lt 3 ] || fail "$p: own times are not those of the program"
	done
	for n in 0 1; do
		kappa=$(sj "targets.$n.kappa") own=$(sj "targets.$n.inclusive_ns")
		# No more than the whole of it, unless a delay is shown to be amplified.
		want=$(awk -v k="$kappa" -v o="$own" -v lo="$(sj "targets.$n.kappa_ci.0")" \
			'BEGIN { k = k < 0 ? 0 : k > 1 && lo <= 1 ? 1 : k; printf "%.3f", k * o }')
		[ "$kappa" = null ] || about 'gain ceiling' "$(sj "targets.$n.gain_ceiling_ns")" "$want" 0.001 ||
			[ "$want" = 0.000 ] || fail "$p: gain ceiling $(sj "targets.$n.gain_ceiling_ns"), not $kappa x $own"
	done
	let_go "$pid"
	finish own "$pid"
done
