#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Launches as fast as two threads can make them, of which the trace may not have all: each is counted, and each is in the
# trace or is reported as lost.
# limit: 60 s
# beside others
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"

spans() { grep -c '"type":"native","name":"cuLaunchKernel' "$T/t.jsonl"; }
for ring in 256K ''; do
	# shellcheck disable=SC2086 # no option at all
	sb trace cuda:launch ${ring:+--ring $ring} -o "$T/t.jsonl" --json "$T/run.json" -- \
		"$V/cuda" -t 2 -n 1 -b 150000 "$V/libcuda.so.1"
	ended 0
	said sb '^self-check ok$' || fail "the program: $(cat "$T/sb.out")"
	own=$(awk '/^calls cuLaunchKernel/ { n += $3 } END { print n }' "$T/sb.out")
	more "ring $ring: its own launches" "$own" 300000
	same "ring $ring: launches" "$(j cuda.launches)" "$own"
	same "ring $ring: recorded and lost" "$(($(j trace.calls) + $(j trace.lost)))" "$own"
	same "ring $ring: in the trace" "$(spans)" "$(j trace.calls)"
	[ "$(j trace.lost)" -eq 0 ] || told "$(j trace.lost) lost"
	[ -z "$ring" ] || small=$(j trace.lost)
done
more 'lost by a small buffer' "$small" 0
