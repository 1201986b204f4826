#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 400 s
# A C program that loads libpython late, starts it in its main thread or another one, ends it and
# starts it again: each interpreter's calls are counted, and nothing is in the way of its end.
. "$SRC/test/lib.sh"
need_python versions

# the libpython of an interpreter; nothing where it has none
library() {
	env -u PYTHONHOME "$1" -c 'import os, sysconfig
get = sysconfig.get_config_var
path = os.path.join(get("LIBDIR") or "", get("INSTSONAME") or "")
if ".so" in path and os.path.exists(path):
    print(path)'
}

# launched LIBRARY WAY...: exact from the first call of each
launched() {
	sb py:__main__:step 1us --json "$T/run.json" -- "$V/embed" "$1" - "${@:2}"
	ended 0 "$*"
	grep -qx 'self-check ok' "$T/sb.out" || fail "$*: $(cat "$T/sb.out")"
	same "hits of $*" "$(j targets.0.hits)" $((1000 * ($# - 1)))
}

in_force() { [ "$(grep -c 'targets in force' "$T/sb.err")" -ge "$1" ]; }
gone() { [ ! -e "$T/w/go" ]; }

# attached LIBRARY WAY...: exact from where it is said to be in force
attached() {
	local n=0 status=0

	rm -rf "$T/w"
	mkdir "$T/w"
	start embed "$V/embed" "$1" "$T/w" "${@:2}"
	sb_start -v -p "$pid" py:__main__:step 1us --json "$T/run.json"
	for _ in "${@:2}"; do
		n=$((n + 1))
		wait_for 15 in_force $n || fail "$*: not in force in interpreter $n"
		touch "$T/w/go"
		wait_for 15 gone || fail "$*: the program does not go on"
	done
	wait "$pid" || status=$?
	sb_wait
	[ $status -eq 0 ] && said embed '^self-check ok$' || fail "$*: status $status: $(cat "$T/embed.err")"
	ended 0 "$*"
	same "hits of $*" "$(j targets.0.hits)" $((1000 * n))
}

# let_off LIBRARY WAY: detached while the interpreter is at work
let_off() {
	local status=0

	rm -rf "$T/w"
	mkdir "$T/w"
	start embed "$V/embed" "$1" "$T/w" "$2" "$2"
	sb_start -v -p "$pid" py:__main__:step 1us --json "$T/run.json"
	wait_for 15 in_force 1 || fail "$*: not in force"
	sb_stop
	let_go "$pid"
	touch "$T/w/go"
	wait_for 15 gone
	touch "$T/w/go"
	wait "$pid" || status=$?
	[ $status -eq 0 ] || fail "$*: status $status"
}

n=0
for p in "${python[@]}"; do
	lib=$(library "$p")
	[ -n "$lib" ] || continue
	n=$((n + 1))
	PYTHONHOME=$(env -u PYTHONHOME "$p" -c 'import sys; print(sys.base_prefix)')
	export PYTHONHOME
	for ways in 'main main main' 'thread thread' 'main beside main' 'beside beside'; do
		# shellcheck disable=SC2086 # words
		launched "$lib" $ways
	done
	for ways in 'main main' 'thread thread'; do
		# shellcheck disable=SC2086
		attached "$lib" $ways
	done
	let_off "$lib" main
	let_off "$lib" thread
	# Before 3.12 only the thread that started it runs what is asked of it.
	env -u PYTHONHOME "$p" -c 'import sys; sys.exit(sys.version_info < (3, 12))' || continue
	attached "$lib" beside main
	attached "$lib" beside beside
done
[ $n -gt 0 ] || skip 'no interpreter here has a shared library'
echo "$n interpreters"
