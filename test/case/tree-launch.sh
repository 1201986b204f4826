#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every way to make a child: each counts for itself, and the sum is exact.
# quick
# beside others
. "$SRC/test/lib.sh"

sb :tree_fn 0 --json "$T/run.json" -- "$V/tree" 1000 5
ended 0
cp "$T/sb.out" "$T/tree.out"
said tree '^self-check ok$' || fail 'the victim is not content'
same hits "$(j targets.0.hits)" "$(calls tree tree_fn)"
n=$(j processes.#) sum=0
for ((i = 0; i < n; i++)); do
	sum=$((sum + $(j "processes.$i.targets.0.hits")))
done
same 'the sum over the processes' "$sum" "$(calls tree tree_fn)"
more 'processes seen' "$n" 25
