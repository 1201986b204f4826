#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A target that locks all memory it maps (mlockall): the control page stays sparse, and a limit on
# locked memory neither keeps us out nor is used up.
# beside others
. "$SRC/test/lib.sh"

field() { sed -n "s/^$2:[^0-9]*\([0-9]*\).*/\1/p" "/proc/$1/status"; }

need_root
need setpriv prlimit
chmod 755 "$T"
cp "$V/locked" "$T/locked"

# maps mapping|resting: whether the victim maps memory of its own, too
maps() {
	kill -USR1 "$pid"
	wait_for 10 said locked "^$1$" || fail "the victim is not $1"
}

# one HOW LIMIT COMMAND... (no LIMIT: as it is)
one() {
	local how=$1 limit=$2 rss locked
	shift 2
	start locked ${limit:+prlimit "--memlock=$limit"} "$@" "$T/locked" "$how"
	snapshot "$pid"
	rss=$(field "$pid" VmRSS) locked=$(field "$pid" VmLck)
	maps mapping
	attach "$pid" :locked_fn 1us
	sleep 0.2
	less "$how, $limit: KiB more in memory" $(($(field "$pid" VmRSS) - rss)) 4096
	less "$how, $limit: KiB more locked" $(($(field "$pid" VmLck) - locked)) 200
	sb_stop
	ended 0 "$how, $limit"
	maps resting
	more hits "$(j targets.0.hits)" 50
	less "$how, $limit: KiB locked after" $(($(field "$pid" VmLck) - locked)) 1
	unchanged "$pid"
	finish locked "$pid"
}

for how in future onfault; do
	one $how ''
	one $how 262144 setpriv --reuid=65534 --regid=65534 --clear-groups
done

# At its very limit it cannot be entered; it is told why, and not changed.
start locked prlimit --memlock=65536 setpriv --reuid=65534 --regid=65534 --clear-groups \
	"$T/locked" full
snapshot "$pid"
refuses 1 'prlimit' --backend inject -p "$pid" :locked_fn 1us --for 100ms
unchanged "$pid"
finish locked "$pid"
