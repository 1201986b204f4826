# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Every CPython from 3.10 on that the machine has, for cases: sourced after lib.sh.
# PYTHONS names more of them, separated by blanks.

pythons() {
	local p
	for p in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[0-9]*/bin/python3 /usr/bin/python3.1[0-9] \
		/usr/local/bin/python3.1[0-9] ${PYTHONS:-}; do
		[ -x "$p" ] && "$p" -c 'import ctypes' 2>/dev/null && echo "$p"
	done
}

# each_python FILE ARG...: runs a program of test/python in every one, or in those that $of lists; it
# must end with "ok"
each_python() {
	local p n=0 agent=$BUILD/python/agent.so

	[ -s "$agent.stripped" ] || skip "sbinject is built without Python targets"
	for p in $("${of:-pythons}"); do
		n=$((n + 1))
		AGENT=$agent "$p" "$SRC/test/python/$1" "${@:2}" >"$T/python.out" 2>&1 &&
			grep -qx ok "$T/python.out" ||
			fail "$("$p" -c 'import sys; print(sys.executable, sys.version)'): $(tail -n 15 "$T/python.out")"
	done
	[ $n -gt 0 ] || skip "there is no CPython 3.10 or later with ctypes"
	echo "$n interpreters"
}
