#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# trace -o: each recorded call is the program's own, by its stamps, in the right process and thread,
# in threads, forks and after an exec; and the three formats have the same calls.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
need python3

compare() { # STAMPS: with $T/calls.jsonl
	read -r compared threads < <(python3 "$SRC/test/tool/stamps.py" "$T/calls.jsonl" "$1") ||
		fail "$1: the trace and the stamps differ"
}

sb trace :outer :inner -o "$T/calls.jsonl" --json "$T/run.json" -- "$V/stamps" "$T/launched" 4 4000
ended 0 launched
compare "$T/launched"
same 'launched: calls' "$(j trace.calls)" "$compared"
same 'launched: lost' "$(j trace.lost)" 0
same 'launched: sums' "$(($(j targets.0.spans.calls) + $(j targets.1.spans.calls)))" "$compared"
same 'launched: threads' "$threads" $((4 + 1 + 1 + 4))
told "recorded: $compared calls in"

for format in jsonl json pftrace; do
	sb trace :outer :inner --format $format -o "$T/calls" --json "$T/run.json" -- \
		"$V/stamps" "$T/formats" 2 500
	ended 0 "$format"
	same "$format: calls" "$(j trace.calls)" 7500
	more "$format: bytes" "$(stat -c %s "$T/calls")" 100000
done
