#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 300 s
# Children made in every way that Python has: each counts for itself, natively too, and exactly.
. "$SRC/test/lib.sh"
need_python

# counted OUT: what the victims say of themselves, "PID N", by pid
counted() { awk '$1 == "calls" { n[$2] += $3 } END { for (p in n) print p, n[p] }' "$1" | sort; }

# rows TARGET: what the JSON says of each process that was in the target
rows() {
	"$p" -c '
import json, sys
hits = {}
for row in json.load(open(sys.argv[1]))["processes"]:
	n = row["targets"][int(sys.argv[2])]["hits"]
	if n:
		hits[row["pid"]] = hits.get(row["pid"], 0) + n
for pid in hits:
	print(pid, hits[pid])' "$T/run.json" "$1" | sort
}

for p in "${python[@]}"; do
	sb py:counted:hit 1us libc.so.6:getsid 0 py:__main__:work 1us --json "$T/run.json" -- \
		"$p" "$SRC/test/victim/python/ways.py"
	ended 0 "$p"
	grep -q '^self-check ok$' "$T/sb.out" || fail "$p: the victim is not content"
	counted "$T/sb.out" >"$T/said"
	[ "$(wc -l <"$T/said")" -gt 15 ] || fail "$p: not all children worked"
	for i in 0 1; do
		rows $i >"$T/seen"
		diff "$T/said" "$T/seen" >"$T/diff" || fail "$p: target $i: $(cat "$T/diff")"
	done
	same "$p: the script's own, in its children" "$(j targets.2.hits)" 73 # 3 x (20 + 1) + 10
done
