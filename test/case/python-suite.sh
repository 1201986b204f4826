#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others, as live idle work
# limit: 400 s
# The interpreter's own tests, launched with every Python function counted and delayed, say what they
# say alone.
. "$SRC/test/lib.sh"
need_python versions
modules="test_generators test_coroutines test_sys_settrace test_sys_setprofile"

# said_by NAME PYTHON COMMAND...: each test and its result, in NAME
said_by() {
	local name=$1 p=$2
	shift 2
	# shellcheck disable=SC2086 # words
	"$@" "$p" -W ignore -m test --junit-xml "$T/$name.xml" $modules >"$T/$name.out" 2>&1
	"$p" -c '
import sys, xml.etree.ElementTree as tree
for case in tree.parse(sys.argv[1]).iter("testcase"):
    print(case.get("name"), case.get("status"), *sorted(child.tag for child in case))
' "$T/$name.xml" >"$T/$name" || fail "$p: no results: $(tail -n 5 "$T/$name.out")"
}

n=0
for p in "${python[@]}"; do
	"$p" -c 'import test.test_generators, test.test_sys_settrace' 2>/dev/null || continue
	n=$((n + 1))
	said_by plain "$p" env
	said_by slowed "$p" "$SB" -q --json "$T/run.json" 'py:*:*' 1us --
	[ "$(wc -l <"$T/plain")" -gt 200 ] || fail "$p: few tests: $(tail -n 5 "$T/plain.out")"
	diff "$T/plain" "$T/slowed" >"$T/diff" || fail "$p: $(cat "$T/diff")"
	more "hits of $p" "$(j targets.0.hits)" 100000
done
[ $n -gt 0 ] || skip 'no interpreter here has its own tests'
echo "$n interpreters"
