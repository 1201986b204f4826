#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that ends within a second, run again and again by a shell: find of the shell says that later
# processes are not hooked, and prints the command that hooks them; typed as it is, that counts and
# delays the calls of many processes. The shell and the programs are what they were.
# beside idle work, two at a time
# limit: 120 s
. "$SRC/test/lib.sh"
need python3

cat >"$T/loop" <<LOOP
echo ready
while [ ! -e "$T/enough" ]; do
	"$V/found" inner >>"$T/runs.out" 2>&1 &
	sleep 0.4
	kill \$!
	wait \$! || echo "failed: \$?" >>"$T/runs.out"
done
LOOP
at_end 'touch "$T/enough"; nap 1; cleanup' # the shell ends what it has started
start loop sh "$T/loop"
# A shell changes its own signals as it forks: what is looked at is its text and its tracer.
clean() { hooked "$pid" && fail "the shell is hooked: $(cat "$T/$pid.hooked")"; await_untraced "$pid"; }
has() { grep -q -- "$1" "$T/sb.out" || fail "no '$1' on the page: $(cat "$T/sb.out")"; }
# the calls of the process that made most
most() { sed -n 's/^calls critical //p' "$T/runs.out" | sort -n | tail -n 1; }
wait_for 10 grep -q '^calls critical' "$T/runs.out" || fail 'no run ends'

sb find -p "$pid" --time 10s --json "$T/run.json"
ended 0
clean
[ "$(j explain.candidates.0)" != null ] || { touch "$T/enough" && wait "$pid"; skip "$(j explain.candidates_reason)"; }
same 'a sweep of what is gone' "$(j sweep)" null
[[ $(j sweep_reason) == *'others began after the attach: --follow'* ]] || fail "reason: $(j sweep_reason)"
more 'not hooked' "$(j unhooked)" 0
[[ $(j commands.count) == *' --no-follow -p '* ]] || fail "the step hooks fewer: $(j commands.count)"
has '^not hooked: .* began after the attach$'
next=$(sed -n 's/^    \$ sbinject //p' "$T/sb.out")
same 'what to do next' "$next" "find --follow --time 10s -p $pid"
same 'the same in the JSON' "$(j next.0.command)" "sbinject $next"

# With what counts the items: on a busy machine nothing may be regular. Where the machine was slow
# meanwhile, a longer one has more calls than one process made at best.
for longer in '' '--time 16s' '--time 24s'; do
	eval "sb $next --progress found:critical $longer --json '$T/run.json'"
	[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "exit status $rc: $(cat "$T/sb.err")"
	clean
	same 'unknown, since all are hooked' "$(j unhooked)" null
	[[ $(j commands.count) != *--no-follow* ]] || fail "the step hooks more: $(j commands.count)"
	[[ $(j commands.sweep) == *' --follow -p '* ]] || fail "the sweep: $(j commands.sweep)"
	python3 - run.json "$(most)" <<'P' && break
import json, sys
d, most = json.load(open(sys.argv[1])), int(sys.argv[2])
counted = {r["target"]: r["calls"] for r in d["rates"]}
swept = {t["spec"]: t["hits"] for t in d["sweep"]["targets"]}
print("calls of one process", most, "counted", counted, "swept", swept)
sys.exit(not (counted["found:critical"] > most and swept["found:critical"] > most))
P
	[ "$longer" != '--time 24s' ] || fail "the calls of later processes: $(cat "$T/sb.out")"
done
! grep -q '^not hooked' "$T/sb.out" || fail "not hooked: $(cat "$T/sb.out")"

touch "$T/enough"
wait "$pid" || fail 'the loop failed'
more 'runs' "$(grep -c '^self-check ok$' "$T/runs.out")" 10
! grep -qi failed "$T/runs.out" || fail "a run failed: $(grep -i failed "$T/runs.out")"
exit 0
