#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# find, interrupted before the first window of its sweep: while the sweep attaches, and while it tests
# what counts the items. The answer has what is known, the status is 0, as of an interrupt in the steps
# before, and the victim is as it was. The command that it prints to go on with works when it is typed.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"

# The tracer of the sweep, stopped before it has planted a hook, in $tracer; false: it was faster.
tracer_stopped() {
	local child comm

	tracer=
	until [ "$tracer" ]; do
		[ -d "/proc/$sb_pid" ] || fail "no attach: $(cat sb.out sb.err)"
		for child in $(cat "/proc/$sb_pid/task/$sb_pid/children"); do
			comm=
			read -r comm 2>/dev/null <"/proc/$child/comm"
			[ "$comm" != sbinject-tracer ] || tracer=$child
		done
	done
	kill -STOP "$tracer"
	! hooked "$pid"
}
answered() { # WHY
	ended 0 "$1"
	[ ! -s sb.err ] || ! grep -v '^sweep: ' sb.err || fail "an error after an interrupt: $(cat sb.err)"
	grep -q '^The answer$' sb.out || fail "no answer: $(cat sb.out)"
	grep -q "^no sweep: $1" sb.out || fail "not '$1': $(cat sb.out)"
	grep -q '^ended early: ' sb.out || fail "not early: $(cat sb.out)"
	next=$(sed -n 's/^    \$ sbinject //p' sb.out)
	[[ $next == 'sweep :'*' --time '* ]] || fail "not what to do next: $(cat sb.out)"
	same 'ended early' "$(j ended_early) $(j sweep)" 'true null'
	unchanged "$pid"
}

start found "$V/found" inner
snapshot "$pid"
for try in 1 2 3 4 5; do
	sb_start find -p "$pid" --progress :critical --time 10s --json "$T/run.json"
	wait_for 20 grep -q '^3\.' sb.out || fail "no third step: $(cat sb.out sb.err)"
	tracer_stopped && before=yes || before=
	kill -INT "$sb_pid"
	nap 0.1 # the command line asks for the end before the tracer goes on
	kill -CONT "$tracer"
	sb_wait
	[ ! "$before" ] && [ "$try" -lt 5 ] || break
done
[ "$before" ] || skip 'the attach was always faster'
answered 'ended before its first window'
eval "sb $next --json '$T/run.json'"
[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "typed, $next: exit status $rc: $(cat sb.err)"
more 'hits of the sweep' "$(j targets.0.hits)" 0
unchanged "$pid"

echo 1 >"it's <items>"
sb_start find -p "$pid" --progress "file:$T/it's <items>" --time 40s --json "$T/run.json"
wait_for 20 grep -q '^3\.' sb.out || fail "no third step: $(cat sb.out sb.err)"
nap 0.3
kill -INT "$sb_pid"
sb_wait
answered 'ended before its first window'
eval "sb ${next/--time 33s/--time 4s}"
ended 1 "typed, $next"
told "progress: 'file:$T/it's <items>' does not move"
unchanged "$pid"
finish found "$pid"
exit 0
