#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Attach and detach 20 times while children are forked, exec and end.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"

cat >"$T/churn.sh" <<END
echo ready
trap 'stop=1' TERM
while [ -z "\$stop" ]; do "$V/tree" 20 1 >>"$T/trees" || echo "tree failed: \$?"; done
echo self-check ok
END
start churn bash "$T/churn.sh"
for i in {1..20}; do
	sb -p "$pid" tree:tree_fn 500ns --for 100ms --json "$T/run.json"
	ended 0 "round $i"
done
"$TOOL/textcheck" "$pid" || fail 'the text differs'
finish churn "$pid"
! grep -q 'FAILED' "$T/trees" || fail 'a tree went wrong'
! grep -q 'tree failed' "$T/churn.out" || fail "$(grep 'tree failed' "$T/churn.out")"
more 'trees grown' "$(grep -c 'self-check ok' "$T/trees")" 20
