#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Arguments and results are the same in the JSON, the table of sums, all formats of traces, report,
# sbctl list and the metrics; list shows what would be recorded; what cannot be recorded is refused.
# limit: 90 s
# beside others
. "$SRC/test/lib.sh"
need python3 dd

write=(libc.so.6:write 'arg=fd:1:i32' 'arg=p:2:ptr' 'arg=bytes:3:u64' 'ret' 'sum=ret' 'sum=bytes')
cat >"$T/same.py" <<'END'
import json, sys
run = json.load(open(sys.argv[1]))["targets"][0]["spans"]
fd, p, size, ret = run["values"]
assert [v["name"] for v in run["values"]] == ["fd", "p", "bytes", "ret"], run
assert (fd["argument"], fd["type"], p["type"], size["argument"]) == (1, "i32", "ptr", 3), run
assert "argument" not in ret and "sum" not in fd and "sum" not in p, run
def rows(path):
    events = [json.loads(line) for line in open(path)]
    return [(e["ts"], e["dur_us"], *(e["args"][n] for n in ("fd", "p", "bytes", "ret")))
            for e in events if e["phase"] == "X"]
first = rows(sys.argv[2])
assert len(first) == run["calls"] >= 500, (len(first), run)
assert all(type(r[2]) is int and int(r[3], 16) and r[4] == r[5] for r in first), first[0]
assert sum(r[2] == 1 and r[4] == 512 for r in first) == 500
assert ret["sum"] == size["sum"] == sum(r[5] for r in first), (ret, size)
assert ret["sum_calls"] == size["sum_calls"] == len(first)
for other in sys.argv[3:]:
    assert rows(other) == first, other
print(ret["sum"])
END
sb trace "${write[@]}" -o "$T/calls.pftrace" --json "$T/run.json" -- \
	dd if=/dev/zero of=/dev/null bs=512 count=500
ended 0
cd "$T" || exit 2
from=calls.pftrace
for to in a.jsonl b.json c.jsonl d.pftrace e.jsonl; do
	"$SB" report "$from" -o "$to" >"$T/out" 2>&1 || fail "report $from: $(cat "$T/out")"
	from=$to
done
sum=$(python3 same.py run.json a.jsonl c.jsonl e.jsonl) || fail 'the formats differ'
told '^target  *value  *calls  *sum  *sum/s  *mean$'
told "^libc.so.6:write  *ret  *[0-9]*  *$sum "
"$SB" report d.pftrace --slowest 500 >out || fail 'report'
same 'report: rows' "$(grep -c 'fd=1 p=0x[0-9a-f]* bytes=512 ret=512$' out)" \
	"$(grep -c 'bytes=512 ' out)"
more 'report: rows' "$(grep -c ' fd=1 ' out)" 490
"$SB" report b.json --slowest 2 --json - >out 2>"$T/err" || fail "$(cat "$T/err")"
python3 -c 'import json, sys
for s in json.load(open(sys.argv[1]))["slowest"]:
    v = s["values"]
    assert v["bytes"] == v["ret"] and v["p"].startswith("0x"), s' out || fail 'report --json'

sb list "${write[@]}" -p $$
ended 0
grep -q '^libc.so.6:write: of each call that is timed: fd (argument 1, i32), p (argument 2, ptr), bytes (argument 3, u64, summed), ret (returned, i64, summed)$' \
	"$T/sb.out" || fail "list: $(cat "$T/sb.out")"

# While it runs: sbctl and the metrics.
if [ -x "$V/values" ]; then
	port=$(free_port)
	start values "$V/values" 1 100000000
	attach "$pid" :v_call 'arg=n:3:u32' 'sum=n' 0 --metrics "$port" -q
	await_session
	counts() { [ "$("$CTL" list | sed 's/.* n_sum=\([0-9]*\).*/\1/')" -gt 0 ]; }
	wait_for 20 counts || fail "sbctl list: $("$CTL" list)"
	"$CTL" add :v_first 0 arg=x:1 ret sum=x >"$T/ctl" 2>&1 || fail "sbctl add: $(cat "$T/ctl")"
	added() { "$CTL" list | grep -q '^:v_first .* x_sum=[1-9]'; }
	wait_for 20 added || fail "sbctl add: $("$CTL" list)"
	"$CTL" disable >"$T/ctl" || fail 'sbctl disable'
	sleep 0.3
	sum=$("$CTL" list | sed -n 's/^:v_call .* n_sum=\([0-9]*\).*/\1/p')
	python3 -c 'import sys, urllib.request as u
text = u.urlopen("http://127.0.0.1:" + sys.argv[1] + "/metrics").read().decode()
rows = [r for r in text.splitlines() if "sbinject_value" in r and not r.startswith("#")]
assert len(rows) == 2, rows
row = [r for r in rows if "v_call" in r][0]
name, value = row.rsplit(" ", 1)
assert name == "sbinject_value_total{target=\":v_call\",value=\"n\"}", row
assert float(value) == float(sys.argv[2]), (row, sys.argv[2])' "$port" "$sum" || fail 'metrics'
	sb_stop
	ended 0
	kill -KILL "$pid"
fi

refuses 2 'belongs to the name of a native function' 'py:x:y' arg=n:1 -p $$
refuses 2 'exclude each other' libc.so.6:write at=exit ret -p $$
refuses 2 'too far' libc.so.6:write arg=n:12 -p $$
refuses 2 'uprobe backend cannot record arguments' --backend uprobe libc.so.6:write ret -p $$
refuses 2 'int3' --mechanism int3 libc.so.6:write ret -p $$
