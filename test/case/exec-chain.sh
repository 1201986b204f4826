#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# exec drops every hook; the new image is hooked before its first call, leader or not.
# quick
# beside others
. "$SRC/test/lib.sh"

for who in leader thread; do
	sb :chain_fn 1us --json "$T/run.json" -- "$V/chain" 200 6 $who
	ended 0 "$who"
	cp "$T/sb.out" "$T/chain.out"
	said chain '^self-check ok$' || fail "$who: the victim is not content"
	same "hits by $who" "$(j targets.0.hits)" "$(calls chain chain_fn)"
	# one row for each program that the process was: 7 of them
	same "rows by $who" "$(j processes.#)" 7
	same "execs by $who" "$(j processes.6.generation)" 6
	same "one pid by $who" "$(j processes.6.pid)" "$(j processes.0.pid)"
done
