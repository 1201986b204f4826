#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# --evidence has the memory of the processes before the attach and after the detach, as their own
# smaps_rollup has it; of a command there is none at the begin, and of one that ended none at the end.
. "$SRC/test/lib.sh"
need python3

rollup() { awk '$1 == "Rss:" || $1 == "Pss:" { print $2 * 1024 }' "/proc/$pid/smaps_rollup" | tr '\n' ' '; }

start reasons "$V/reasons"
snapshot "$pid"
read -ra before <<<"$(rollup)"
port=$(free_port)
attach "$pid" :item 0 --evidence=memory --metrics "$port" --json "$T/run.json"
await_session
python3 - "http://127.0.0.1:$port" <<'P' >live.err 2>&1 || fail "live: $(cat live.err)"
import json, sys, urllib.request as u
page = u.urlopen(sys.argv[1] + "/metrics").read().decode()
m = json.loads(u.urlopen(sys.argv[1] + "/report").read())["evidence"]["process_memory"]
assert m["end"] is None and m["begin"]["processes"] == 1, m
line = next(l for l in page.splitlines() if l.startswith('sbinject_evidence_process_memory_begin_bytes{kind="pss"}'))
assert float(line.rsplit(" ", 1)[1]) == m["begin"]["pss_bytes"] > 0, line
P
sb_stop
ended 0
read -ra after <<<"$(rollup)"
python3 - run.json "${before[@]}" "${after[@]}" <<'P' >check 2>&1 || fail "$(cat check)"
import json, sys
m = json.load(open(sys.argv[1]))["evidence"]["process_memory"]
told = list(map(int, sys.argv[2:]))
print(m, told)
for edge, (rss, pss) in (m["begin"], told[:2]), (m["end"], told[2:]):
    assert edge["unknown"] == {} and edge["processes"] == 1 and 0 < edge["read_ns"] < 10e9
    # Pages of files that others map, as the C library, come and go meanwhile.
    assert abs(edge["rss_bytes"] - rss) <= 0.05 * rss + 65536, edge
    assert abs(edge["pss_bytes"] - pss) <= 0.5 * pss + 65536, edge
    assert 0 < edge["anonymous_bytes"] <= edge["rss_bytes"] and edge["swap_bytes"] >= 0, edge
P
unchanged "$pid"

finish reasons "$pid"

sb --evidence libc.so.6:nanosleep 0 --json "$T/run.json" -- /bin/sleep 0.1
ended 0
same 'before a command' "$(j evidence.process_memory.begin.rss_bytes) $(j evidence.process_memory.begin.unknown.rss_bytes)" \
	'null the program had not begun'
same 'after a command' "$(j evidence.process_memory.end.rss_bytes) $(j evidence.process_memory.end.unknown.rss_bytes)" \
	'null the processes had ended'
exit 0
