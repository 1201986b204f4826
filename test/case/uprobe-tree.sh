#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# By uprobes: children of every kind, daemons and execs, each in a row of its own, the sum exact;
# of a command from its first call on.
# beside idle work
. "$SRC/test/lib.sh"
need_uprobe

rows() { # their sum
	local n i sum=0

	n=$(j processes.#)
	for ((i = 0; i < n; i++)); do
		sum=$((sum + $(j "processes.$i.targets.0.hits")))
	done
	echo $sum
}

start tree "$V/tree" 200 3 "$T/gate"
attach_told "$pid" --backend uprobe :tree_fn 1us
touch "$T/gate"
wait_for 30 said tree '^called$' || fail 'the tree did not grow'
sb_stop INT
ended 0
let_go "$pid"
finish tree "$pid"
same hits "$(j targets.0.hits)" "$(calls tree tree_fn)"
same delayed "$(j targets.0.delayed)" "$(calls tree tree_fn)"
same 'the sum over the processes' "$(rows)" "$(calls tree tree_fn)"

sb --backend uprobe :tree_fn 0 --json "$T/run.json" -- "$V/tree" 200 3
ended 0
cp "$T/sb.out" "$T/tree.out"
said tree '^self-check ok$' || fail 'the victim is not content'
same hits "$(j targets.0.hits)" "$(calls tree tree_fn)"
same 'the sum over the processes' "$(rows)" "$(calls tree tree_fn)"
more 'processes seen' "$(j processes.#)" 15

for who in leader thread; do
	sb --backend uprobe :chain_fn 1us --json "$T/run.json" -- "$V/chain" 200 6 $who
	ended 0 "$who"
	cp "$T/sb.out" "$T/chain.out"
	said chain '^self-check ok$' || fail "$who: the victim is not content"
	same "hits by $who" "$(j targets.0.hits)" "$(calls chain chain_fn)"
	same "rows by $who" "$(j processes.#)" 7
	same "execs by $who" "$(j processes.6.generation)" 6
	same "one pid by $who" "$(j processes.6.pid)" "$(j processes.0.pid)"
done
