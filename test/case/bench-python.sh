#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The bench of Python measures: its figures are numbers, and a delay of 1 us and of 10 us shows. (A few
# rounds do not tell a counted call from a plain one.)
# quick
. "$SRC/test/lib.sh"
. "$SRC/test/python/pythons.sh"
agent=$BUILD/python/agent.so
[ -s "$agent.stripped" ] || skip 'built without Python targets'
p=$(pythons | head -n 1)
[ -n "$p" ] || skip 'no CPython that has an agent'
AGENT=$agent ROUNDS=3 "$p" "$SRC/test/bench/bench-python.py" >row 2>&1 || fail "$p: $(cat row)"
awk 'NF == 8 && $2 > 0 && $7 > 500 && $8 > 5000 { ok = 1 } END { exit !ok }' row ||
	fail "figures: $(cat row)"
