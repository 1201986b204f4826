#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An interpreter that ends while its doorbell is answered: the session sees its end when it takes
# the thread that rings, and goes on with what it held of the process, which has been forgotten. And
# one that ends, and is started again, while the tracer has no processor: the second start is seen.
# limit: 300 s
. "$SRC/test/fault/walk.bash"
need_python

# its libpython; nothing where it has none
library() {
	env -u PYTHONHOME "$1" -c 'import os, sysconfig
get = sysconfig.get_config_var
path = os.path.join(get("LIBDIR") or "", get("INSTSONAME") or "")
print(path if ".so" in path and os.path.exists(path) else "")'
}

n=0
for p in "${python[@]}"; do
	lib=$(library "$p")
	[ -n "$lib" ] || continue
	n=$((n + 1))
	for nth in 1 2 3; do
		PYTHONHOME=$("$p" -c 'import sys; print(sys.base_prefix)') \
			run "carried-out:$nth=stall" py:__main__:step 0 --json "$T/run.json" -- \
			"$V/embed" "$lib" - beside beside
		[ "$rc" -eq 0 ] || fail "$p: stall $nth: status $rc: $(cat "$T/sb.err")"
		same "hits of $p, stall $nth" "$(j targets.0.hits)" 2000
	done
done

# attached LIBRARY FAULT: to a program whose interpreter starts later: beside the fault, before there are
# doorbells at its start, and it is at work in one long call; without one, after that
attached() {
	local status=0

	rm -rf "$T/w"
	mkdir "$T/w"
	start embed "$V/embed" "$1" "$T/w" later
	wait_for 10 said embed '^loaded$' || fail "$1: not loaded"
	[ -n "$2" ] || touch "$T/w/go"
	SBINJECT_FAULT=$2 SBINJECT_FAULT_GATE=$T/w/start \
		sb_start -v -p "$pid" py:__main__:step 0 --json "$T/run.json"
	if [ -n "$2" ]; then
		wait_for 10 grep -q 'targets in force' "$T/sb.err" || fail "$1: not in force"
		touch "$T/w/go"
	else
		wait_for 10 hooked "$pid" || fail "$1: no doorbell"
		nap 0.2
		touch "$T/w/start"
	fi
	wait "$pid" || status=$?
	sb_wait
	[ $status -eq 0 ] && [ "$rc" -eq 0 ] || fail "$1: status $status, sbinject's $rc"
	same "hits of $1, ${2:-no fault}" "$(j targets.0.hits)" 1000
}

# missed LIBRARY WAY: the tracer sees none of the doorbells that an interpreter passes at its start. Of
# a thread that is busy in C before, it has asked in vain already.
missed() {
	local status=0

	rm -rf "$T/w"
	mkdir "$T/w"
	start embed "$V/embed" "$1" "$T/w" "$2"
	wait_for 10 said embed '^loaded$' || fail "$1: not loaded"
	SBINJECT_FAULT=ring-missed:0=error sb_start -v -p "$pid" py:__main__:step 0 --json "$T/run.json"
	wait_for 10 hooked "$pid" || fail "$1: no doorbell"
	nap 0.5
	touch "$T/w/start"
	wait_for 10 grep -q 'targets in force' "$T/sb.err" || fail "$1: $2: not in force without a ring"
	touch "$T/w/go"
	wait "$pid" || status=$?
	sb_wait
	[ $status -eq 0 ] && [ "$rc" -eq 0 ] || fail "$1: status $status, sbinject's $rc"
	same "hits of $1, $2, no ring" "$(j targets.0.hits)" 1000
}
for p in "${python[@]}"; do
	lib=$(library "$p")
	[ -n "$lib" ] || continue
	PYTHONHOME=$("$p" -c 'import sys; print(sys.base_prefix)')
	export PYTHONHOME
	missed "$lib" later
	missed "$lib" busy
	attached "$lib" await-start=stall
	attached "$lib" ''
	unset PYTHONHOME
done
[ $n -gt 0 ] || echo 'no interpreter here has a shared library'

for point in call-start call-entered call-left mailbox-map ring; do
	for nth in 1 3 6 9 12 15; do
		run "$point:$nth=kill-target" py:__main__:nothing 0 -- "${python[0]}" -c 'pass'
		! grep 'tracer died' "$T/sb.err" || fail "$point:$nth: the tracer died"
		[ "$rc" -eq 137 ] || [ "$rc" -eq 0 ] || fail "$point:$nth: status $rc: $(cat "$T/sb.err")"
		[ "$rc" -ne 0 ] || break
	done
done
