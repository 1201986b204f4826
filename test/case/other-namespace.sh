#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A target in another mount namespace, with files that only it can see.
# beside others
. "$SRC/test/lib.sh"

need_root
need unshare
mkdir "$T/room"
cat >"$T/inside.sh" <<END
mount -t tmpfs none "$T/room" || exit 9
cp "$V/calls" "$V/victim-lib.so" "$T/room"
exec "$T/room/calls" -l "$T/room/victim-lib.so"
END
unshare -m true 2>/dev/null || skip 'unshare is not permitted'
start calls unshare -m sh "$T/inside.sh"
[ ! -e "$T/room/calls" ] || fail 'the room can be seen from outside'
snapshot "$pid"
sb -p "$pid" :victim_work 1us "$T/room/victim-lib.so:lib_fn" 0 --for 300ms --json "$T/run.json"
ended 0
more hits "$(j targets.0.hits)" 100
more 'hits in the library' "$(j targets.1.hits)" 100
unchanged "$pid"
finish calls "$pid"
