#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# limit: 600 s
# Interpreters without a GIL (PYTHON_FT names some; else those of pyenv, PATH and PYTHONS): calls in
# several threads at once are counted exactly and delayed at the same time, from the start and
# attached; those before 3.14.1 are refused. And no thread makes a remote call that may hold one of the
# interpreter's many locks, so that no thread waits for itself ($CYCLES attaches to programs that
# take these locks all the time).
. "$SRC/test/lib.sh"
[ -s "$BUILD/python/agent.so.stripped" ] || skip 'sbinject is built without Python targets'
export PYTHONDONTWRITEBYTECODE=1
CYCLES=${CYCLES:-10}
PY=$SRC/test/victim/python

free_threaded() { "$1" -c 'import sys; sys.exit(sys._is_gil_enabled())' 2>/dev/null; }

# found: every such interpreter, one a line
found() {
	local p
	for p in ${PYTHON_FT:-"${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*t/bin/python3 \
		$(command -v python3.13t python3.14t python3.15t) ${PYTHONS:-}}; do
		[ -x "$p" ] && free_threaded "$p" && echo "$p"
	done
}

# launched PYTHON THREADS: every call of every thread is counted, and none holds a GIL
launched() {
	sb py:__main__:work 20us --json "$T/run.json" -- "$1" "$PY/threads.py" "$2" 2000
	[ "$rc" -eq 0 ] || fail "$1, $2 threads: status $rc: $(cat "$T/sb.err")"
	same "$1: hits of $2 threads" "$(j targets.0.hits)" $(($2 * 2000))
	! grep 'GIL' "$T/sb.err" && ! grep '"gil"' "$T/run.json" || fail "$1: there is no GIL"
}

# at_once PYTHON: four threads have 400 ms of delays each, in much less time than 1600 ms; a delay is
# longer than a turn on a processor, so that it makes no difference how many of them are free
at_once() {
	local begin=${EPOCHREALTIME/[.,]/}

	sb py:__main__:work 40ms --json "$T/run.json" -- "$1" "$PY/threads.py" 4 10
	same "$1: hits" "$(j targets.0.hits)" 40
	[ $((${EPOCHREALTIME/[.,]/} - begin)) -lt 1300000 ]
}

# cycles PYTHON PROGRAM ARG...: in and out of a program that runs on, right in the end
cycles() {
	local p=$1 program=$2 hits=0 i
	start "$program" "$p" "$PY/$program.py" "${@:3}"
	for ((i = 1; i <= CYCLES; i++)); do
		sb -p "$pid" py:__main__:work 1us --for 30ms --json "$T/run.json"
		[ "$rc" -eq 0 ] || [ "$rc" -eq 3 ] || # 3: no call in the window
			fail "$p, $*, attach $i: status $rc"
		! grep -q 'no safe point' "$T/sb.err" || fail "$p, $*, attach $i: it waits for itself"
		hits=$((hits + $(j targets.0.hits)))
		let_go "$pid"
	done
	more "$p, $*: hits" "$hits" 0
	finish "$program" "$pid"
}

# refused PYTHON: its children could lock up; the program runs on, and with a GIL it is served
refused() {
	sb py:__main__:step 1us -- "$1" "$PY/app.py" 1000
	told 'without a GIL.*3.14.1.*PYTHON_GIL=1'
	grep -q '^calls [0-9]* 1000$' "$T/sb.out" || fail "$1: $(cat "$T/sb.out" "$T/sb.err")"
	PYTHON_GIL=1 sb py:__main__:step 1us --json "$T/run.json" -- "$1" "$PY/app.py" 1000
	same "$1: hits with PYTHON_GIL=1" "$(j targets.0.hits)" 1000
}

mapfile -t python < <(found)
[ ${#python[@]} -gt 0 ] || skip 'there is no free-threaded CPython (PYTHON_FT=FILE names one)'
for p in "${python[@]}"; do
	if "$p" -c 'import sys; sys.exit(sys.version_info >= (3, 14, 1))'; then
		refused "$p"
		continue
	fi
	AGENT=$BUILD/python/agent.so "$p" -W ignore "$SRC/test/python/parallel.py" \
		>"$T/python.out" 2>&1 && grep -qx ok "$T/python.out" ||
		fail "$p: $(tail -n 12 "$T/python.out")"
	for n in 1 2 8; do
		launched "$p" "$n"
	done
	at_once "$p" || at_once "$p" || at_once "$p" ||
		fail "$p: the delays of threads are given one after the other"
	for n in 1 4 8; do
		cycles "$p" threads "$n" 0
	done
	cycles "$p" stops 3
	start alone "$p" "$PY/alone.py"
	sb -p "$pid" py:__main__:step 1us --for 200ms --json "$T/run.json"
	ended 0 "$p, one thread that never sleeps"
	let_go "$pid"
	finish alone "$pid"
done
