#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Whole runs of a command, interleaved: their time, or a number that they print, is the progress.
# limit: 120 s
# beside idle work
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"

runs() { sb sweep -q :crit --runs 8 --doses 50us,100us --seed 3 --json "$T/sweep.json" "$@"; }
# As measures() asks: not three in a row.
runs_hold() {
	for _ in 1 2 3; do
		runs "$@" -- "$V/sweep-shapes" serial n=300
		[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "exit status $rc"
		holds 0 1 && return
	done
	fail "the interval does not hold 1: $(cat sb.out)"
}
runs_hold
same 'hits a run' "$(sj targets.0.hits_per_item | cut -d. -f1)" 300
same 'runs' "$(sj runs)" true
awk -v ns="$(sj targets.0.inclusive_ns)" 'BEGIN { exit !(ns < 300 * 1000) }' ||
	fail "300 calls of an empty function take $(sj targets.0.inclusive_ns) ns"
runs_hold --progress 'stdout:items done: ([0-9]+)'
same 'hits an item' "$(sj targets.0.hits_per_item | cut -d. -f1)" 1
before=$T/sweep.json
cp "$before" a.json
runs -- "$V/sweep-shapes" serial n=300
sb compare a.json "$T/sweep.json"
[ "$rc" -le 1 ] || fail "compare: exit status $rc"
grep -q '^:crit' sb.out || fail "compare: $(cat sb.out)"

# A Python function's own time a run: it spins for 100 us, 200 times; preemption may add to that.
if [ -s "$BUILD/python/agent.so.stripped" ] && mapfile -t python < <(pythons) && [ ${#python[@]} -gt 0 ]; then
	cat >crit.py <<-'EOF'
		import time
		def crit():
		    until = time.perf_counter_ns() + 100000
		    while time.perf_counter_ns() < until:
		        pass
		for _ in range(200):
		    crit()
	EOF
	sb sweep -q py:__main__:crit --runs 2 --doses 100us --json "$T/sweep.json" -- "${python[-1]}" crit.py
	own=$(sj targets.0.inclusive_ns)
	[ "$own" != null ] || fail "no own time: $(sj targets.0.inclusive_ns_reason)"
	more 'own time a run' "${own%.*}" 19000000
	less 'own time a run' "${own%.*}" 2000000000
	same 'runs for own time' "$(grep -o '"own time"' sweep.json | wc -l)" 3
fi
refuses 1 'matched nothing' sweep -q :crit --runs 2 --progress 'stdout:never' -- "$V/sweep-shapes" serial n=50
refuses 1 'status 1' sweep -q :crit --runs 2 -- false
refuses 1 'not found' sweep -q :crit --runs 2 -- ./nonexistent
refuses 2 'doses of its own' sweep -q :crit 5us --runs 2 -- true
refuses 2 '--doses 2us' sweep -q :crit --doses 1us 2us --runs 2 -- true
refuses 2 'belongs to the command' sweep -q :crit --runs 2 --json - -- true
refuses 2 'runs' sweep -q :crit --runs 2 --progress :item -p 1 -- true
refuses 2 'cannot|no such' compare a.json ./nonexistent
