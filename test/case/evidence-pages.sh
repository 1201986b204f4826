#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Of a program that knows how many pages of its reads the page cache had, --evidence has the same of
# each thread: cold and warm reads, reads ahead, holes, pages that it wrote, and sendfile.
# beside idle work, two at a time
# limit: 120 s
. "$SRC/test/lib.sh"
need python3
need_root

cat >check.py <<'P'
import json, sys
e, drops = json.load(open(sys.argv[1]))["evidence"], sys.argv[3] == "1"
threads = {t["name"]: t["counters"] for t in e["threads"]}
own = {line.split()[1]: list(map(int, line.split()[2:])) for line in open(sys.argv[2]) if line.startswith("pages ")}
kinds = ("page_cache_reads", "page_cache_misses", "page_cache_adds")
for name, (reads, misses, adds) in own.items():
    got = [threads[name][kind] for kind in kinds]
    print(name, "own", reads, misses, adds, "evidence", *got)
assert own["v-cold"][0] and own["v-warm"][0] and own["v-sent"][0]
for name, (reads, misses, adds) in own.items():
    got = [threads[name][kind] for kind in kinds]
    assert got[0] == reads, name
    assert misses < 0 or got[1] == misses, name
    # The file system brings pages of its own (directories, lists of blocks), of a block device.
    assert not drops or adds <= got[2] <= adds + 8, name
assert e["counters"]["page_cache_reads"] >= sum(reads for reads, _, _ in own.values())
io = json.load(open(sys.argv[4]))["evidence"]["io"]
assert io["cache_hits"] == e["counters"]["page_cache_reads"] - e["counters"]["page_cache_misses"], io
assert io["cache_misses"] == e["counters"]["page_cache_misses"], io
ratio = 100 * io["cache_hits"] / e["counters"]["page_cache_reads"]
assert abs(io["cache_hit_ratio"] - ratio) < 0.01, io
P

"$SB" doctor --json - >doctor.json
[ "$("$TOOL/jget" doctor.json evidence.2.ok)" = true ] || skip "no BPF: $("$TOOL/jget" doctor.json evidence.2.reason)"
start pages "$V/pages" -g "$T/gate" -f "$T/data" 256
sb_start -p "$pid" libc.so.6:getpid 0 --evidence --json "$T/run.json" --report "$T/report.json"
wait_for 30 hooked "$pid" || fail "no hook: $(cat sb.out sb.err)"
await_session
sleep 0.5
touch gate
wait_for 60 said pages '^over [01]$' || fail "the victim: $(cat pages.out)"
kill -INT "$sb_pid"
sb_wait
same 'exit status' "$rc" 0
finish pages "$pid"
same source "$(j evidence.source)" bpf
[ "$(j evidence.counters.page_cache_misses)" != null ] || skip 'no tracepoints of the page cache on this kernel'
drops=$(sed -n 's/^over //p' pages.out)
[ "$drops" = 1 ] || echo 'FILE stays in the page cache: what comes into it is not compared'
python3 check.py run.json pages.out "$drops" report.json >check 2>&1 || fail "$(cat check)"
cat check
exit 0
