#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# An interpreter without a GIL (PYTHON_FT names one; else those of pyenv and PATH) is refused with
# the remedy, its program runs on unharmed; with the remedy it is served.
. "$SRC/test/lib.sh"
[ -s "$BUILD/python/agent.so.stripped" ] || skip 'sbinject is built without Python targets'
export PYTHONDONTWRITEBYTECODE=1

# found: every such interpreter, one a line
found() {
	local p
	for p in ${PYTHON_FT:-"${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*t/bin/python3 \
		$(command -v python3.13t python3.14t)}; do
		[ -x "$p" ] && "$p" -c 'import sys; sys.exit(sys._is_gil_enabled())' 2>/dev/null &&
			echo "$p"
	done
}

mapfile -t python < <(found)
[ ${#python[@]} -gt 0 ] || skip 'there is no free-threaded CPython (PYTHON_FT=FILE names one)'
for p in "${python[@]}"; do
	sb py:__main__:step 1us -- "$p" "$SRC/test/victim/python/app.py" 1000
	told 'runs without a GIL.*PYTHON_GIL=1'
	grep -q '^calls [0-9]* 1000$' "$T/sb.out" || fail "$p: $(cat "$T/sb.out" "$T/sb.err")"
	PYTHON_GIL=1 sb py:__main__:step 1us --json "$T/run.json" -- \
		"$p" "$SRC/test/victim/python/app.py" 1000
	same "$p: hits with PYTHON_GIL=1" "$(j targets.0.hits)" 1000
done
