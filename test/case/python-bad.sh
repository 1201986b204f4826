#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 120 s
# What cannot be done to an interpreter is said with its reason, at once where that is possible, and
# is never passed off as "not called"; the interpreter works on as before.
. "$SRC/test/lib.sh"
need_python
PY=$SRC/test/victim/python
p=${python[0]}

for bad in py:a py::f py:a: py: py:a:b:c; do
	refuses 2 'py:MODULE:QUALNAME' -p $$ $bad 1us
	refuses 2 'py:MODULE:QUALNAME' list -p $$ $bad
done

# none PATTERN: what matches nothing is said at the end, by list at once
none() {
	sb list -p "$pid" "$1"
	ended 3 "list $1"
	grep -q 'no function of that name' "$T/sb.out" || fail "list $1: $(cat "$T/sb.out")"
	sb -p "$pid" "$1" 1us --for 200ms --json "$T/run.json"
	ended 3 "$1"
	told 'not found: .*no function of that name has been called'
	same "outcome of $1" "$(j targets.0.outcome) $(j targets.0.hits)" 'no_match null'
}
start plain "$p" "$PY/plain.py"
none py:__main__:stepp
none 'py:__main_:*'
none 'py:*/plain.pyc:step'
sb -p "$pid" py:__main__:stepp 1us py:__main__:step 0 --for 300ms --json "$T/run.json"
ended 0 'one of two matches'
same 'outcomes' "$(j targets.0.outcome) $(j targets.1.outcome)" 'no_match counted'
let_go "$pid"
finish plain "$pid"
sb py:__main__:stepp 1us --json "$T/run.json" -- "$p" "$PY/plain.py" 50
ended 0 'launched'
told 'not found: .*no function of that name has been called'
sb py:__main__:stepp 1us --require-hits -- "$p" "$PY/plain.py" 50
ended 125 'launched with --require-hits'
# beside a child that is no interpreter at all
sb py:__main__:stepp 1us --json "$T/run.json" -- "$p" -c 'import os; os.system("sleep 0.1"), exit(5)'
ended 5
same 'beside a child' "$(j targets.0.outcome)" no_match

# no interpreter: it may come yet
"$V/calls" >"$T/calls.out" &
pid=$!
pids+=("$pid")
wait_for 10 said calls '^ready$'
snapshot "$pid" -t
sb -p "$pid" py:__main__:step 1us --for 200ms --json "$T/run.json"
ended 3
told 'pending: .*no Python interpreter is mapped'
unchanged "$pid" -t
finish calls "$pid"

# old PYTHON: one that the agent does not know, attached to, listed, launched
old() {
	start plain "$1" "$PY/plain.py"
	snapshot "$pid"
	refuses 3 'is older than 3.10' -p "$pid" py:__main__:step 1us
	sb list -p "$pid" py:__main__:step
	ended 3 "list, $1"
	grep -q 'older than 3.10' "$T/sb.out" || fail "list $1: $(cat "$T/sb.out")"
	unchanged "$pid"
	finish plain "$pid"
	sb py:__main__:step 1us --json "$T/run.json" -- "$1" "$PY/plain.py" 50
	ended 0 "$1"
	told 'older than 3.10'
	same "outcome of $1" "$(j targets.0.outcome) $(j targets.0.hits)" 'refused null'
	grep -q '^calls step 50$' "$T/sb.out" || fail "$1: it was disturbed"
}
for o in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/{2.7,3.8,3.9}.*/bin/python; do
	[ -x "$o" ] && old "$o"
done

# taken PYTHON: beside tools that leave no id free, and one
taken() {
	start tools "$1" "$PY/tool_ids.py" 6
	sb -p "$pid" py:__main__:step 1us --for 200ms --json "$T/run.json"
	ended 3 "$1"
	told 'all tool ids of sys.monitoring are taken; stop a debugger'
	same "outcome of $1" "$(j targets.0.outcome) $(j targets.0.hits)" 'refused null'
	let_go "$pid"
	finish tools "$pid"
	for n in 5 1; do
		start tools "$1" "$PY/tool_ids.py" $n
		sb -p "$pid" py:__main__:step 1us --for 1s --json "$T/run.json"
		ended 0 "$1"
		more "hits of $1" "$(j targets.0.hits)" 20
		let_go "$pid"
		finish tools "$pid"
	done
}
for q in "${python[@]}"; do
	"$q" -c 'import sys; sys.exit(sys.version_info < (3, 12))' && taken "$q"
done

# What follows needs a compiler.
command -v cc >/dev/null || exit 0

# something that has a name or two of CPython's
cat >"$T/like.c" <<'C'
#include <stdio.h>
#include <unistd.h>
int Py_AddPendingCall(void) { return 0; }
int PyModule_AddObjectRef(void) { return 0; }
int main(void) { puts("ready"); fflush(stdout); pause(); return 0; }
C
cc -rdynamic -o "$T/like" "$T/like.c"
start like "$T/like"
refuses 3 'has no symbol Py_MakePendingCalls' -p "$pid" py:__main__:step 1us
told 'is it CPython'
let_go "$pid"

# a dynamic linker that does not find the agent
cat >"$T/audit.c" <<'C'
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
unsigned la_version(unsigned version) { return version; }
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
	(void)cookie, (void)flag;
	return strstr(name, "/proc/") ? NULL : (char *)name;
}
C
cc -shared -fPIC -o "$T/audit.so" "$T/audit.c"
for q in "${python[@]}"; do
	start plain env LD_AUDIT="$T/audit.so" "$q" "$PY/plain.py"
	sb -p "$pid" py:__main__:step 1us --for 200ms --json "$T/run.json"
	ended 3 "$q"
	told 'the agent could not be loaded: .'
	same "outcome of $q" "$(j targets.0.outcome) $(j targets.0.hits)" 'refused null'
	let_go "$pid"
	finish plain "$pid"
done
