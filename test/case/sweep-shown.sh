#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# README shows every line that its sweep prints, in their order, and no other.
# limit: 90 s
# beside idle work
. "$SRC/test/lib.sh"

# The first word of each line: the rest has figures.
# That the machine is busy is of the machine.
words() { sed 's/^sbinject: warning: .*//; /^processors .* busy:/d; /^$/d; s/ .*//' "$1"; }

sed -n '/^    \$ sbinject sweep :crit/,/^$/p' "$SRC/README.md" | sed '1d; s/^    //' >"$T/readme"
words "$T/readme" >"$T/shown"
more 'lines in README' "$(wc -l <"$T/shown")" 10
mkdir -p build/test
ln -s "$V" build/test/victim
# A verdict is of a run: on a busy machine it may be another one.
for _ in 1 2 3; do
	"$SB" sweep :crit --progress :item --time 4s -- build/test/victim/sweep-shapes serial n=60000 \
		>"$T/run" 2>&1 || continue
	words "$T/run" >"$T/printed"
	cmp -s "$T/shown" "$T/printed" && exit 0
done
fail "README shows other lines: $(diff "$T/shown" "$T/printed"; cat "$T/run")"
