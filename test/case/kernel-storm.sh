#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# 2000 children that are forked as fast as it goes, each with one call, at once or all together: each call counts and
# is in the trace, of targets in the kernel and of uprobes, although the kernel has no memory at hand for so many rows.
# beside idle work
# limit: 200 s
. "$SRC/test/lib.sh"
own_victims
need_root
need_uprobe
mknod "$T/nvidiactl" c 1 3 || skip 'no device can be made'
: <>"$T/nvidiactl" || skip 'devices cannot be opened here'

CHILDREN=2000
for how in '' -d; do
	# shellcheck disable=SC2086 # no option at all
	sb trace 'ioctl:nvidia*' tracepoint:sched:sched_process_fork -o "$T/t.jsonl" --json "$T/run.json" -- \
		"$V/storm" $how -n $CHILDREN "$T/nvidiactl"
	ended 0
	said sb '^self-check ok$' || fail "the program: $(cat "$T/sb.out")"
	said sb "^children $CHILDREN\$" || fail "the program: $(cat "$T/sb.out")"
	same "calls $how" "$(j targets.0.hits)" $CHILDREN
	same "forks $how" "$(j targets.1.hits)" $((CHILDREN + 2)) # and two threads
	same 'none lost' "$(j trace.lost)" 0
	same 'in the trace' "$(grep -c '"name":"NV_ESC_RM_CONTROL","phase":"X"' "$T/t.jsonl")" $CHILDREN
	same 'of as many processes' "$(sed -n 's/.*"NV_ESC_RM_CONTROL","phase":"X","pid":\([0-9]*\).*/\1/p' "$T/t.jsonl" | sort -u | wc -l)" $CHILDREN
	! grep 'could not be counted' "$T/sb.err" || fail 'lost'
	# shellcheck disable=SC2086
	sb --backend uprobe :storm_ask 0 --json "$T/run.json" -- "$V/storm" $how -n $CHILDREN "$T/nvidiactl"
	ended 0
	said sb '^self-check ok$' || fail "the program: $(cat "$T/sb.out")"
	same "hits of a uprobe $how" "$(j targets.0.hits)" $CHILDREN
done
