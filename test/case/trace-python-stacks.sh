#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# trace --stacks of native functions that Python calls: the Python frames are those that the program
# finds itself, with their lines, between the native ones: methods, recursion, generators, coroutines,
# callbacks, threads, a fork, code that exec() makes; with the GIL and without it. Calls of Python
# functions have them, too. On each CPython, shared or static.
# limit: 180 s
# beside others
. "$SRC/test/lib.sh"
need_python

lib='victim-pycall.so'

traced() { # PYTHON WAY OPTIONS...
	rm -f "$T/truth"
	sb trace "$lib:pycall_slow" arg=id:1:i32 "$lib:pycall_back" arg=id:1:i32 "${@:3}" --stacks --stack-size 64K \
		-o "$T/calls.jsonl" --json "$T/run.json" --min 1ms -- "$1" "$SRC/test/victim/python/callers.py" \
		"$V/$lib" "$T/truth" "$2"
	ended 0 "$1 $2"
	grep -q 'self-check ok' "$T/sb.out" || fail "$1: no self-check"
	same "$1: stacks lost" "$(j trace.stacks_lost)" 0
}

compared() { # PYTHON OPTION...
	python3 "$SRC/test/tool/pycallers.py" "$T/calls.jsonl" "$T/truth" "${@:2}" >"$T/compared" ||
		fail "$1: $(cat "$T/compared")"
}

for p in "${python[@]}"; do
	"$p" -c 'import ctypes, sys
sys.exit(sys.version_info >= (3, 14) or "t" in sys.abiflags)' 2>/dev/null || continue
	traced "$p" ways
	compared "$p"
	same "$p: calls, ways, unknown ones" "$(cat "$T/compared")" "$(wc -l <"$T/truth") 22 0 0"
	# A native function that calls Python is between the two.
	grep -q '"py:called_back [^]]*victim-pycall.so:pycall_back+[^]]*"py:ways ' "$T/calls.jsonl" ||
		fail "$p: $(grep called_back "$T/calls.jsonl")"

	traced "$p" again py:__main__:plain py:__main__:generate py:__main__:inner \
		py:__main__:Shapes.method
	compared "$p"
	read -r calls _ _ functions <"$T/compared"
	same "$p: calls" "$calls" "$(wc -l <"$T/truth")"
	more "$p: calls of Python functions" "$functions" 15

	# More frames than are kept: those that are there are right, and it says so.
	traced "$p" many
	compared "$p" some
	grep -q '"stack_end":"there are more callers than are kept"' "$T/calls.jsonl" || fail "$p: $(tail -1 "$T/calls.jsonl")"
done

# All formats keep them, and the report shows them.
for format in pftrace json; do
	sb report "$T/calls.jsonl" -o "$T/calls.$format"
	ended 0 "to $format"
	sb report "$T/calls.$format" -o "$T/again.jsonl"
	ended 0 "from $format"
	cmp -s <(grep -o '"stack":.*' "$T/calls.jsonl") <(grep -o '"stack":.*' "$T/again.jsonl") || fail "$format: other stacks"
done
sb report "$T/calls.pftrace" --slowest 1
ended 0
grep -q '^  py:recurse (.*callers.py:[0-9]*)$' "$T/sb.out" || fail 'the report shows no Python frame'
