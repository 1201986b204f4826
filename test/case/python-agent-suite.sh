#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others, as idle work
# limit: 600 s
# The interpreter's own tests of what the agent shares with others say with it what they say without.
. "$SRC/test/lib.sh"
. "$SRC/test/python/pythons.sh"

agent=$BUILD/python/agent.so n=0
[ -s "$agent.stripped" ] || skip "sbinject is built without Python targets"
modules="test_generators test_contextlib test_sys_setprofile test_bdb test_cprofile"

# run PYTHON MODE: its results, in MODE.results
run() {
	AGENT=$agent "$1" -W ignore "$SRC/test/python/suite.py" "$2" $modules >"$T/$2.out" 2>"$T/$2.err" &&
		grep -qx ok "$T/$2.out" || fail "$1 $2: $(tail -n 5 "$T/$2.out" "$T/$2.err")"
	grep '^result' "$T/$2.out" >"$T/$2.results"
}

for p in $(versions); do
	"$p" -c 'import test.test_bdb, test.test_generators' 2>/dev/null || continue
	n=$((n + 1))
	run "$p" plain
	for mode in count flip time; do
		run "$p" $mode
		diff "$T/plain.results" "$T/$mode.results" >"$T/diff" || fail "$p $mode: $(cat "$T/diff")"
	done
done
[ $n -gt 0 ] || skip "no interpreter here has its own tests"
echo "$n interpreters"
