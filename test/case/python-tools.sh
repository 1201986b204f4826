#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 400 s
# Profilers, debuggers, coverage, frame evaluators that share the interpreter's hooks see what they
# see alone, whether they begin before, while or after sbinject is there; and every hit is counted.
. "$SRC/test/lib.sh"
need_python
VICTIM=$SRC/test/victim/python/beside.py
if command -v cc >/dev/null; then
	cc -shared -fPIC -O2 -o "$T/chain.so" "$SRC/test/python/chain.c" || fail 'chain.c'
	export CHAIN=$T/chain.so
fi

went() { [ -e "$T/w/went" ]; }
in_force() { grep -q 'targets in force' "$T/sb.err"; }

put_back() { # PYTHON: it was there first, and takes the agent out as it leaves
	wait_for 15 grep -q 'until it was put back calls were not seen' "$T/sb.err" || fail "$1: not put back"
	touch "$T/w/on"
}

# attached PYTHON WAY [TOOL...]: comes while they are at work, and goes while they are
attached() {
	local p=$1 way=$2 status=0

	rm -rf "$T/w"
	mkdir "$T/w"
	start beside "$p" -W ignore "$VICTIM" "$way" "$T/w" "${@:3}"
	sb_start -v -p "$pid" py:__main__:step 1us --json "$T/run.json"
	wait_for 15 in_force || fail "$*: the agent did not get in: $(tail -n 5 "$T/beside.err")"
	touch "$T/w/go"
	[ "$way" != put-out ] || put_back "$p"
	wait_for 30 went || fail "$*: the program does not go on: $(cat "$T/beside.err")"
	sb_stop
	ended 0 "$*"
	let_go "$pid"
	same "hits of $*" "$(j targets.0.hits)" "$(calls beside step)"
	same "delayed of $*" "$(j targets.0.delayed)" "$(calls beside step)"
	touch "$T/w/stop"
	wait "$pid" || status=$?
	[ $status -eq 0 ] && said beside '^self-check ok$' ||
		fail "$*: status $status: $(tail -n 5 "$T/beside.out" "$T/beside.err")"
}

# launched PYTHON WAY [TOOL...]: there before them
launched() {
	sb py:__main__:step 1us --json "$T/run.json" -- "$1" -W ignore "$VICTIM" "$2" - "${@:3}"
	ended 0 "$*"
	grep -q '^self-check ok$' "$T/sb.out" || fail "$*: the program is not content"
	same "hits of $*" "$(j targets.0.hits)" "$(sed -n 's/^calls step //p' "$T/sb.out")"
}

for p in "${python[@]}"; do
	launched "$p" rounds
	launched "$p" throughout cprofile trace monitoring evaluator
	attached "$p" throughout cprofile trace monitoring evaluator
	if "$p" -c 'import sys; sys.exit(sys.version_info >= (3, 12))'; then
		attached "$p" rounds cprofile profile setprofile trace bdb lines
		[ -z "${CHAIN:-}" ] || attached "$p" put-out evaluator
	else
		attached "$p" rounds
	fi
	"$p" -c 'import coverage' 2>/dev/null || continue
	launched "$p" throughout coverage
	attached "$p" throughout coverage
	"$p" -c 'import sys; sys.exit(sys.version_info < (3, 12))' || continue
	COVERAGE_CORE=sysmon launched "$p" rounds coverage
	COVERAGE_CORE=sysmon attached "$p" rounds coverage
done
