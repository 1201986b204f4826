#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Of a program that knows which locks of the kernel it waits for, and how long, how many files it
# opens and what it asks of a device, --evidence has the same of each thread; /report has them, too.
# beside idle work, two at a time
# limit: 120 s
. "$SRC/test/lib.sh"
need python3
need_root

cat >check.py <<'P'
import json, sys
e, rounds = json.load(open(sys.argv[1]))["evidence"], int(sys.argv[3])
threads = {t["name"]: t["counters"] for t in e["threads"]}
own = {line.split()[1]: list(map(int, line.split()[2:])) for line in open(sys.argv[2]) if line.startswith("within ")}
waiter, files = threads["v-waiter"], threads["v-files"]
print(own, {k: v for k, v in waiter.items() if k.startswith("kernel_")},
      {k: v for k, v in files.items() if k.startswith(("disk_", "file_"))})
for kind, wall in zip(("rwsem", "mutex"), own["v-waiter"]):
    waits, ns = waiter[f"kernel_{kind}_waits"], waiter[f"kernel_{kind}_ns"]
    # The host may take the processor from the waiter on its way to the lock.
    assert waits >= 0.9 * rounds, (kind, waits)
    # Between its two clocks the thread has the call itself, and at times no processor.
    assert 0.9 * wall - 5e6 <= ns <= wall, (kind, ns, wall)
opens, reads, read_ns, all_ns = own["v-files"]
assert files["file_opens"] in (opens, None), files["file_opens"]
if reads:
    # The file system may read blocks of its own in calls of the thread. Then there are more bytes.
    more = files["disk_read_requests"] - reads
    assert 0 <= more <= 8, files["disk_read_requests"]
    assert more * 512 <= files["disk_read_bytes"] - reads * 4096, (more, files["disk_read_bytes"])
    most = all_ns * more + read_ns
    assert 0 < files["disk_read_ns"] <= most, (files["disk_read_ns"], most)
    assert files["disk_write_requests"] > 0 and files["disk_write_ns"] > 0, files
else:
    print("FILE cannot be read past the page cache: requests are not compared")
if files["file_opens"] is None:
    print("the kernel permits no program at its functions: opened files are not compared")
for name in ("disk_read_requests", "kernel_mutex_waits", "kernel_rwsem_waits"):
    assert e["counters"][name] >= sum(t[name] for t in threads.values()), name
report = json.load(open(sys.argv[4]))["evidence"]
assert report["locks"]["mutex_contentions"] >= 0.9 * rounds and report["locks"]["rwsem_wait_ns"] > 0
assert report["io"]["file_opens"] is None or report["io"]["file_opens"] >= opens
if reads:
    mean = report["io"]["avg_disk_latency_us"]
    assert report["io"]["disk_requests"] >= reads and 0 < mean < 1e6, mean
P

"$SB" doctor --json - >doctor.json
[ "$("$TOOL/jget" doctor.json evidence.2.ok)" = true ] || skip "no BPF: $("$TOOL/jget" doctor.json evidence.2.reason)"
rounds=50
start within "$V/within" -g "$T/gate" -f "$T/data" $rounds
sb_start -p "$pid" libc.so.6:getpid 0 --evidence --json "$T/run.json" --interval 200ms --report "$T/report.json"
wait_for 30 hooked "$pid" || fail "no hook: $(cat sb.out sb.err)"
await_session
sleep 0.5
touch gate
wait_for 60 said within '^over$' || fail "the victim: $(cat within.out)"
sleep 1 # a report of all of it
kill -INT "$sb_pid"
sb_wait
same 'exit status' "$rc" 0
finish within "$pid"
same source "$(j evidence.source)" bpf
[ "$(j evidence.counters.kernel_mutex_ns)" != null ] || skip 'no tracepoints of contention on this kernel'
python3 check.py run.json within.out $rounds report.json >check 2>&1 || fail "$(cat check)"
cat check
exit 0
