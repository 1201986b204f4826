#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# report reads a trace that is larger than all the memory that it may have, with everything asked for.
# limit: 120 s
# beside others, as idle work
. "$SRC/test/lib.sh"

awk 'BEGIN {
	print "{\"type\":\"trace\",\"name\":\"t\",\"phase\":\"M\",\"args\":{\"begin_ns\":1000}}"
	for (i = 0; i < 100000; i++)
		printf "{\"event_id\":%d,\"ts\":%.9f,\"type\":\"native\",\"name\":\"f%d\",\"phase\":\"X\"," \
			"\"pid\":7,\"tid\":%d,\"dur_us\":%d,\"args\":{\"thread\":%d,\"module\":\"m\"}}\n",
			i, i / 1e5, i % 300, 7 + i % 20, 1 + i % 15, 1 + i % 20
	print "{\"type\":\"end\",\"name\":\"t\",\"phase\":\"M\",\"ts\":1,\"args\":{\"spans\":100000}}"
}' >"$T/part.jsonl"
sb report "$T/part.jsonl" -o "$T/part.pftrace"
ended 0
# Traces one behind the other are one: each begins with its whole state.
for ((i = 0; i < 45; i++)); do cat "$T/part.pftrace"; done >"$T/large.pftrace"
limit=$((150 << 10))
more 'size of the trace' "$(($(wc -c <"$T/large.pftrace") >> 10))" $limit
(
	[[ $SB == *-san/* ]] || ulimit -v $limit
	"$SB" report "$T/large.pftrace" --slowest 50 --gaps --timeline --svg "$T/f.svg" --folded "$T/f.folded" \
		--json "$T/run.json" >"$T/report.out" 2>"$T/sb.err"
) || fail 'the report of a large trace'
same spans "$(j spans)" 4500000
same functions "$(j functions.#)" 300
(
	[[ $SB == *-san/* ]] || ulimit -v $limit
	"$SB" report "$T/large.pftrace" -o "$T/copy.pftrace" 2>"$T/sb.err"
) || fail 'the conversion of a large trace'
sb report "$T/copy.pftrace" --json "$T/run.json"
ended 0
same copied "$(j spans)" 4500000
same complete "$(j trace.complete)" true
