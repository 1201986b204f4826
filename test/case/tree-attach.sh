#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Children of an attached process, daemons too, are hooked, counted and let go.
# quick
# beside others
. "$SRC/test/lib.sh"

start tree "$V/tree" 1000 5 "$T/gate"
attach "$pid" :tree_fn 1us
touch "$T/gate"
wait_for 30 said tree '^called$' || fail 'the tree did not grow'
sb_stop INT
ended 0
let_go "$pid" # it has closed its pipe by itself
finish tree "$pid"
same hits "$(j targets.0.hits)" "$(calls tree tree_fn)"
same delayed "$(j targets.0.delayed)" "$(calls tree tree_fn)"
