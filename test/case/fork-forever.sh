#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# limit: 240 s
# A server that forks or execs for each request: our own memory does not grow with every one of them,
# and the totals stay exact.
. "$SRC/test/lib.sh"

rss() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"; }

cat >"$T/loop.sh" <<'S'
i=0
while [ $i -lt "$1" ]; do
	/bin/true
	i=$((i + 1))
	[ $i -ne "$2" ] || echo half
done
echo done
S
env --default-signal=INT,QUIT "$SB" libc.so.6:getpid 0 --json "$T/run.json" -- /bin/sh "$T/loop.sh" 800 600 \
	>"$T/loop.out" 2>"$T/sb.err" </dev/null &
sb_pid=$!
pids+=("$sb_pid")
wait_for 100 said loop half || fail "it does not get on: $(cat "$T/sb.err")"
tracer=$(for t in /proc/[0-9]*; do
	[ "$(cat "$t/comm" 2>/dev/null)" = sbinject-tracer ] && grep -q "^PPid:	$sb_pid$" "$t/status" 2>/dev/null && echo "${t#/proc/}"
done)
[ -n "$tracer" ] || fail 'no tracer'
half=$(rss "$tracer")
wait_for 100 said loop 'done' || fail 'it does not end'
end=$(rss "$tracer" 2>/dev/null || echo "$half")
sb_wait
ended 0
[ "${end:-$half}" -le $((half + 2048)) ] || fail "the tracer grew from $half to $end KiB"
grep -q 'ended early' "$T/run.json" || fail 'nothing says that some are not listed'
more 'processes listed' "$(grep -c '"generation"' "$T/run.json")" 400
