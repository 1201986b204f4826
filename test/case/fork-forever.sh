#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# limit: 240 s
# A server that forks or execs for each request: our own memory does not grow with every one of them,
# and the totals stay exact.
# beside others
. "$SRC/test/lib.sh"

rss() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"; }

cat >"$T/loop.sh" <<'S'
i=0
while [ $i -lt "$1" ]; do
	/bin/true
	i=$((i + 1))
	[ $i -ne "$2" ] || echo early
	[ $i -ne "$3" ] || echo late
done
echo done
S
# A sanitizer keeps what is freed, up to hundreds of megabytes, unless it is told not to.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=1:thread_local_quarantine_size_kb=64 \
	env --default-signal=INT,QUIT "$SB" libc.so.6:__libc_start_main 0 --json "$T/run.json" -- /bin/sh "$T/loop.sh" 1000 600 900 \
	>"$T/loop.out" 2>"$T/sb.err" </dev/null &
sb_pid=$!
pids+=("$sb_pid")
wait_for 100 said loop early || fail "it does not get on: $(cat "$T/sb.err")"
tracer=$(for t in /proc/[0-9]*; do
	[ "$(cat "$t/comm" 2>/dev/null)" = sbinject-tracer ] && grep -q "^PPid:	$sb_pid$" "$t/status" 2>/dev/null && echo "${t#/proc/}"
done)
[ -n "$tracer" ] || fail 'no tracer'
early=$(rss "$tracer")
# not at the end: the result is made then
wait_for 100 said loop late || fail 'it does not get on'
late=$(rss "$tracer")
sb_wait
ended 0
[ "$late" -le $((early + 2048)) ] || fail "the tracer grew from $early to $late KiB"
# of the shell and of each command it started
same hits "$(j targets.0.hits)" 1001
grep -q 'ended early' "$T/run.json" || fail 'nothing says that some are not listed'
more 'processes listed' "$(grep -c '"generation"' "$T/run.json")" 400
