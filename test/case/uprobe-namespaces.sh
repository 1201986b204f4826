#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# By uprobes: a target in namespaces of its own (files and pids), and sbinject itself in one, where
# processes have other numbers than the kernel's.
# beside idle work
. "$SRC/test/lib.sh"
need_uprobe
need unshare
unshare -mpf --mount-proc true 2>/dev/null || skip 'unshare is not permitted'

mkdir "$T/room"
cat >"$T/inside.sh" <<END
mount -t tmpfs none "$T/room" || exit 9
cp "$V/calls" "$T/room"
exec "$T/room/calls" -n 2000 -g "$T/gate" -w
END
start calls unshare -m sh "$T/inside.sh"
[ ! -e "$T/room/calls" ] || fail 'the room can be seen from outside'
attach_told "$pid" --backend uprobe :victim_work 0
touch "$T/gate"
wait_for 20 said calls '^called$' || fail 'the calls were not made'
sb_stop
ended 0
finish calls "$pid"
same 'hits in a room' "$(j targets.0.hits)" 2000

# Seen from outside, inside of a pid namespace; forks there too.
start tree unshare -pf --kill-child --mount-proc "$V/tree" 100 2 "$T/gate2"
attach_told "$pid" --backend uprobe "$V/tree:tree_fn" 0
touch "$T/gate2"
wait_for 20 said tree '^called$' || fail 'the tree did not grow'
sb_stop
ended 0
same 'hits of a tree in a namespace' "$(j targets.0.hits)" "$(calls tree tree_fn)"
kill -KILL "$pid"; wait "$pid" 2>/dev/null

# Both inside: there process 1 is another one than the kernel's.
cat >"$T/both.sh" <<END
"$SB" --backend uprobe :tree_fn 0 --json "$T/run.json" -- "$V/tree" 100 2
END
unshare -mpf --mount-proc sh "$T/both.sh" >"$T/tree.out" 2>"$T/sb.err" || fail "inside: $?"
same 'hits of a tree beside sbinject' "$(j targets.0.hits)" "$(calls tree tree_fn)"
less 'pids as they are there' "$(j processes.0.pid)" 200
