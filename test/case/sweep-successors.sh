#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that ends within a second, run again and again: a sweep of the shell that does so names the
# processes that it does not hook; --follow hooks them, as a sweep that starts the shell does; one that
# starts the program alone names the way out.
# limit: 60 s
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"

cat >"$T/loop" <<LOOP
echo ready
i=0
while [ ! -e "$T/enough" ]; do
	"$V/sweep-shapes" serial n=500 >>"$T/runs.out" 2>&1
	i=\$((i + 1))
	echo \$i >"$T/count.new" && mv "$T/count.new" "$T/count"
done
LOOP
start loop sh "$T/loop"
# A shell changes its own signals as it forks: what is looked at is its text and its tracer.
clean() { hooked "$pid" && fail "the shell is hooked: $(cat "$T/$pid.hooked")"; await_untraced "$pid"; }
sweep "$pid" sweep-shapes:crit --progress sweep-shapes:item --time 1s
# By chance the hooked process ends before the source is checked.
[ "$rc" -eq 6 ] || [ "$rc" -eq 1 ] || fail "exit status $rc: $(cat sb.err)"
[ "$rc" -eq 1 ] || same 'the shell' "$(verdict)" INVALID
grep -q 'process began after the attach and is not hooked: .*-- COMMAND' sb.out sb.err ||
	fail "$(cat sb.out sb.err)"
clean

# The source moves on without the hooked process: the target's calls are not seen any more.
wait_for 10 test -s "$T/count" || fail 'no run was complete'
sweep "$pid" sweep-shapes:crit --progress "file:$T/count" --time 2s
grep -q 'process began after the attach and is not hooked: .*-- COMMAND' sb.out sb.err ||
	fail "$(cat sb.out sb.err)"
clean

# Nothing is missing, since the shell itself calls the function: the others are named all the same. A window
# ends with an item, when none of them runs.
sweep "$pid" libc.so.6:write --progress "file:$T/count" --time 3s
[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "exit status $rc: $(cat sb.err)"
more 'hits of the shell' "$(sj targets.0.hits)" 1
grep -q '^[0-9]* process.* began after the attach and .* not hooked: .*-- COMMAND' sb.out || fail "$(cat sb.out)"
clean

# Followed: those that begin later are hooked.
sweep "$pid" sweep-shapes:crit --progress sweep-shapes:item --time 1500ms --follow
case $(verdict) in CRITICAL | INCONCLUSIVE | PARTIAL) ;; *) fail "$(verdict): $(cat sb.out)" ;; esac
more 'hits, followed' "$(sj targets.0.hits)" 500
clean
touch "$T/enough"
wait "$pid" || fail 'the loop failed'
grep -q 'self-check ok' "$T/runs.out" || fail 'no run was complete'
! grep -qi 'failed' "$T/runs.out" || fail "$(cat "$T/runs.out")"

rm "$T/enough"
: >"$T/runs.out"
(sleep 2 && touch "$T/enough") &
after=$!
sb sweep -q sweep-shapes:crit --progress sweep-shapes:item --time 1500ms --json "$T/sweep.json" -- sh "$T/loop"
wait "$after"
case $(verdict) in CRITICAL | INCONCLUSIVE | PARTIAL) ;; *) fail "$(verdict): $(cat sb.out)" ;; esac
more 'runs' "$(grep -c 'self-check ok' "$T/runs.out")" 1
more 'hits' "$(sj targets.0.hits)" 500
! grep -qi 'failed' "$T/runs.out" || fail "$(cat "$T/runs.out")"

sb sweep -q :crit --progress :item --time 20s -- "$V/sweep-shapes" serial n=800
ended 6 'a program that ends'
grep -q 'the target ended after .*again and again' sb.out || fail "no way out: $(cat sb.out)"
grep -q 'self-check ok' sb.out || fail 'the program is not what it was'
exit 0
