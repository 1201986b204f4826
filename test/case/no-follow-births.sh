#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --no-follow: threads and vfork children that are born while a hook is put in or taken out are held
# like everybody else, at attach and at each change; untraced again afterwards, their mothers as well.
# limit: 240 s
# beside others
. "$SRC/test/lib.sh"

ctl() { "$CTL" "$@" >"$T/ctl.out" 2>&1 || fail "sbctl $*: $(cat "$T/ctl.out")"; }
lives() { ! grep -q '^State:	[ZX]' "/proc/$pid/status" || fail "$1: the target died"; }

for ((i = 0; i < ${ROUNDS:-2}; i++)); do
	start births "$V/births"
	attach_told "$pid" :births_fn 0 --no-follow
	wait_for 10 untraced "$pid" || fail "round $i: it is still traced after the attach"
	for ((k = 0; k < 25; k++)); do
		ctl remove :births_fn
		lives "round $i, remove $k"
		ctl add :births_fn 0
		lives "round $i, add $k"
	done
	wait_for 10 untraced "$pid" || fail "round $i: it is still traced after a change"
	sb_stop
	ended 0 "round $i"
	more "hits in round $i" "$(j targets.0.hits)" 1000
	let_go "$pid"
	finish births "$pid"
done
