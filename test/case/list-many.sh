#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `list` of functions by the ten thousand, native and Python, stays within seconds, and one name
# without end does not make every line as long.
# beside others, as idle work
. "$SRC/test/lib.sh"
need python3
need gcc

within() { # MS COMMAND...
	local least=999999 t
	for _ in 1 2 3; do
		t=$(date +%s%N)
		"${@:2}" >"$T/list" || fail "${*:2}: it fails"
		t=$((($(date +%s%N) - t) / 1000000))
		[ $t -ge $least ] || least=$t
		[ $least -ge "$1" ] || return 0
	done
	fail "${*:2}: $least ms, not within $1"
}

long=$(printf 'x%.0s' {1..3000})
python3 -c "
for i in range(12511):
    print(f'int some_function_with_a_name_that_others_begin_with_{i}(int a) {{ return a * {i} + {i + 1}; }}')
print('int $long(int a) { return a * 2; }')" >"$T/many.c"
gcc -O1 -shared -fPIC -o "$T/many.so" "$T/many.c" || fail 'gcc'
cat >"$T/hold.py" <<'P'
import ctypes, os, sys, types, time
lib = ctypes.CDLL(sys.argv[1])
for m in range(125):
    mod = sys.modules[f"pk{m}"] = types.ModuleType(f"pk{m}")
    code = "\n".join(f"def function_with_a_name_that_others_begin_with_{i}(a): return a" for i in range(100))
    exec(compile(code, f"/pk{m}.py", "exec"), mod.__dict__)
parent = os.getpid()
for i in range(3): # one address space each, with the same functions
    if not os.fork(): break
else: print("ready", flush=True)
while os.getpid() == parent or os.getppid() == parent: time.sleep(0.1)
P
start hold python3 "$T/hold.py" "$T/many.so"
within 2000 "$SB" list -p "$pid" 'many.so:*'
[ "$(grep -c ' some_function' "$T/list")" -ge 12511 ] || fail "$(wc -l "$T/list")"
less 'bytes a line' "$(($(wc -c <"$T/list") / $(wc -l <"$T/list")))" 600
grep -q "$long" "$T/list" || fail 'a long name is cut in a file'
if [ -s "$BUILD/python/agent.so.stripped" ]; then
	within 2000 "$SB" list --no-children -p "$pid" 'py:pk*:*'
	same 'Python functions' "$(grep -c ' function_with' "$T/list")" 12500
fi

kill "$pid" # its forks follow it
wait "$pid" 2>/dev/null
sleep 0.5
