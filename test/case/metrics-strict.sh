#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is served parses as OpenMetrics by the letter, and the file as what the textfile collector
# reads: one sample of its name and labels, whatever targets are called, two of one name among them.
# beside others
# quick
. "$SRC/test/lib.sh"
need python3

port=$(free_port)
start calls "$V/calls"
snapshot "$pid"
odd=$'od"d\\name\nin two.so:fn' # a file may be called that
attach "$pid" :victim_work 2us "$odd" 5us later.so:fn 1us later.so:fn 2us pid="$pid" --metrics "$port" \
	--metrics-file "$T/sb.prom" --metrics-by-pid --evidence --interval 100ms
await_session
cat >"$T/strict.py" <<'P'
import re, sys, time, urllib.request

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"')
odd, pid = sys.argv[2], sys.argv[3]

def parse(text, openmetrics):
    assert text.endswith("# EOF\n") and text.count("# EOF") == 1
    types, units, family, seen, done, all_labels = {}, {}, None, set(), set(), []
    for line in text.split("\n")[:-2]:
        assert line == line.strip() and line, line
        if line.startswith("# "):
            what, name, rest = line[2:].split(" ", 2)
            if name != family:
                assert name not in done, "interleaved: " + name
                done.add(family)
                family = name
            if what == "TYPE":
                assert name not in types
                types[name] = rest
                assert rest in (("counter", "gauge", "stateset") if openmetrics else ("counter", "gauge")), rest
            elif what == "UNIT":
                assert openmetrics and name.endswith("_" + rest)
                units[name] = rest
            else:
                assert what == "HELP" and rest
            continue
        m = SAMPLE.fullmatch(line)
        assert m, line
        labels = dict(LABEL.findall(m[2] or ""))
        assert m[1] == family + ("_total" if openmetrics and types[family] == "counter" else ""), line
        assert openmetrics or types[family] != "counter" or family.endswith("_total")
        if types[family] == "stateset":
            assert labels[family] in ("on", "off", "pending") and m[3] in ("0", "1")
        key = (m[1], tuple(sorted(labels.items())))
        assert key not in seen, "twice: " + line
        seen.add(key)
        assert float(m[3]) >= 0
        all_labels.append((m[1], labels))
    for name, labels in all_labels:
        labels["target"] = re.sub(r'\\(.)', lambda e: "\n" if e[1] == "n" else e[1], labels.get("target", ""))
    named = [l for n, l in all_labels if n == "sbinject_delay_seconds"]
    assert {l["target"] for l in named} == {":victim_work", odd, "later.so:fn"}, named
    assert sorted(l.get("tree", "") for l in named) == ["", "", "", pid], named
    assert any(n == "sbinject_hits_total" and l.get("pid") == pid for n, l in all_labels)
    for part in "machine_interrupts", "cgroup_", "process_memory_begin_bytes":
        assert any(n.startswith("sbinject_evidence_" + part) for n, l in all_labels), part

time.sleep(0.5)
def get(accept):
    headers = {"Accept": accept} if accept else {}
    r = urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:%s/metrics" % sys.argv[1], headers=headers))
    openmetrics = r.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert openmetrics or r.headers["Content-Type"].startswith("text/plain; version=0.0.4"), r.headers
    parse(r.read().decode(), openmetrics)
    return openmetrics

# as Prometheus asks
assert get("application/openmetrics-text;version=1.0.0;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,"
           "text/plain;version=0.0.4;q=0.4,*/*;q=0.3")
assert get("application/openmetrics-text")
for other in (None, "*/*", "text/plain", "application/openmetrics-text;q=0, text/plain"):
    assert not get(other), other
for i in range(20):  # never a part of it
    parse(open(sys.argv[4]).read(), False)
    time.sleep(0.02)
P
wait_for 10 test -s "$T/sb.prom" || fail 'no file'
python3 "$T/strict.py" "$port" "$odd" "$pid" "$T/sb.prom" >"$T/py.out" 2>&1 || fail "$(cat "$T/py.out")"
sb_stop
ended 0
unchanged "$pid"
finish calls "$pid"
