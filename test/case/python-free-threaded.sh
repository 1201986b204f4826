#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# limit: 300 s
# Interpreters without a GIL (PYTHON_FT names one; else those of pyenv and PATH): calls in several
# threads at once are counted exactly and delayed in parallel, from the start and attached.
. "$SRC/test/lib.sh"
[ -s "$BUILD/python/agent.so.stripped" ] || skip 'sbinject is built without Python targets'
export PYTHONDONTWRITEBYTECODE=1

free_threaded() { "$1" -c 'import sys; sys.exit(sys._is_gil_enabled())' 2>/dev/null; }

# found: every such interpreter, one a line
found() {
	local p
	for p in ${PYTHON_FT:-"${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*t/bin/python3 \
		$(command -v python3.13t python3.14t python3.15t)}; do
		[ -x "$p" ] && free_threaded "$p" && echo "$p"
	done
}

mapfile -t python < <(found)
[ ${#python[@]} -gt 0 ] || skip 'there is no free-threaded CPython (PYTHON_FT=FILE names one)'
for p in "${python[@]}"; do
	AGENT=$BUILD/python/agent.so "$p" -W ignore "$SRC/test/python/parallel.py" \
		>"$T/python.out" 2>&1 && grep -qx ok "$T/python.out" ||
		fail "$p: $(tail -n 12 "$T/python.out")"

	sb py:__main__:work 20us --json "$T/run.json" -- "$p" "$SRC/test/victim/python/threads.py" 4 2000
	[ "$rc" -eq 0 ] || fail "$p: status $rc: $(cat "$T/sb.err")"
	same "$p: hits" "$(j targets.0.hits)" 8000
	grep -q GIL "$T/sb.err" && fail "$p: there is no GIL: $(cat "$T/sb.err")"
	grep -q '"gil"' "$T/run.json" && fail "$p: there is no GIL: $(grep '"gil"' "$T/run.json")"

	start parallel "$p" "$SRC/test/victim/python/threads.py" 4 0
	for ((i = 0; i < 5; i++)); do
		sb -p "$pid" py:__main__:work 10us --for 50ms --json "$T/run.json"
		[ "$rc" -eq 0 ] || fail "$p: attach $i: status $rc: $(cat "$T/sb.err")"
		more "$p: hits" "$(j targets.0.hits)" 0
		let_go "$pid"
	done
	finish parallel "$pid"
done
