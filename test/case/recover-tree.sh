#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# A tree of processes that a killed sbinject left hooked: an attach to its root refuses and names what to
# do; `recover -p ROOT` restores all of them, as its help says, and not only the root.
. "$SRC/test/lib.sh"

start root bash -c '"$0" & "$0" & echo ready; wait' "$V/calls"
root=$pid
children() { pgrep -P "$root" -x calls; }
two() { [ "$(children | wc -l)" -eq 2 ]; }
wait_for 10 two || fail 'the tree has not grown'
mapfile -t child < <(children)
pids+=("${child[@]}")
for p in "${child[@]}"; do snapshot "$p"; done

sb_start -p "$root" calls:victim_work 0
for p in "${child[@]}"; do wait_for 10 hooked "$p" || fail "$p is not hooked"; done
tracer=$(awk '/^TracerPid/ { print $2 }' "/proc/${child[0]}/status")
kill -STOP "$sb_pid" # so that it cannot restore between the two
kill -KILL "$tracer" "$sb_pid"
wait "$sb_pid" 2>/dev/null

sb -p "$root" calls:victim_work 0 --for 100ms
[ "$rc" -ne 0 ] || fail 'an attach counts in a tree that was left hooked'
told "recover -p $root"
for p in "${child[@]}"; do hooked "$p" || fail "$p: the refused attach has changed it"; done

sb recover -p "$root" --no-children
ended 0
sb -p "$root" calls:victim_work 0 --for 100ms
[ "$rc" -ne 0 ] || fail 'an attach counts in children that were left hooked'
told "recover -p $root"
for p in "${child[@]}"; do hooked "$p" || fail "--no-children: $p is restored"; done
sb recover -p "$root"
ended 0
grep -q '^restored [23] processes$' "$T/sb.out" || fail "it says: $(cat "$T/sb.out")"
for p in "${child[@]}"; do unchanged "$p"; done

sb -p "$root" calls:victim_work 0 --for 300ms --json "$T/run.json"
ended 0 'an attach after a recovery'
same 'processes counted' "$(j targets.0.procs)" 2
more hits "$(j targets.0.hits)" 0
for p in "${child[@]}"; do
	unchanged "$p"
	kill -TERM "$p"
done
