#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# time=yes: a call that is left in another way than by a return, or resumed by another thread, or
# interrupted anywhere, is missing at most; no time is recorded that no call took.
# limit: 120 s
. "$SRC/test/lib.sh"

[ -x "$V/torture" ] || skip 'there is no C++ compiler'
need_python

seed=${TORTURE_SEED:-$RANDOM}
targets=()
for name in leaf outer node deep jump thrower pass tail yield hand torn fork spawn exit; do
	targets+=(":t_$name" 0 time=yes)
done

torture() { # LEAST[ own] HZ MODE...
	local hz=$2 least
	read -ra least <<<"$1"
	shift 2
	seed=$((seed + 1))
	sb "${targets[@]}" --json "$T/run.json" -- \
		"$V/torture" -s "$seed" -d "${TORTURE_MS:-400}" -r "$hz" -l 6000 "$@"
	ended 0 "$*"
	grep -q '^self-check ok$' "$T/sb.out" || fail "$*: $(cat "$T/sb.out")"
	grep '^{' "$T/sb.out" >"$T/own.json"
	"${python[0]}" "$SRC/test/python/torture.py" "$T/run.json" "$T/own.json" "${least[@]}" >"$T/compared" ||
		fail "seed $seed: $*: $(cat "$T/compared")"
}

for mode in plain recurse tail fork; do
	torture '1 own' 0 $mode
done
torture 1 0 fiber
torture 1 0 spawn exit plain
torture 0.99 0 jump throw recurse
torture 0.99 2000 plain signal recurse
torture 0.99 4000 torn plain
torture 0.99 1000 jump throw tail fiber fork spawn exit signal recurse plain
# The entries of a recursion that is deeper than the table give way.
torture 0.1 0 deep
same 'own times' "$(j targets.3.spans.exclusive_ns)" null
