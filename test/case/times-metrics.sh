#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --metrics and --metrics-file have how long calls take as a histogram, by the conventions of both
# formats; its figures are those of sbctl list.
# beside others
. "$SRC/test/lib.sh"
need python3

port=$(free_port)
scrape() { # ACCEPT FILE
	python3 -c 'import sys, urllib.request as u
r = u.urlopen(u.Request(sys.argv[1], headers={"Accept": sys.argv[2]}))
sys.stdout.write(r.read().decode())' "http://127.0.0.1:$port/metrics" "$1" >"$2"
}
start spans "$V/spans"
snapshot "$pid"
attach "$pid" :span_outer 0 time=yes :span_inner 0 time=yes pid="$pid" :span_left 0 time=yes \
	:span_ends 0 --metrics "$port" --metrics-file "$T/sb.prom" --interval 100ms -q
await_session
scraped() { scrape text/plain "$T/classic" && grep -q '_count{target=":span_outer"} [1-9]' "$T/classic"; }
wait_for 10 scraped || fail "nothing is served: $(cat "$T/classic")"
# From now on nothing changes, so that all readings agree; what is in progress ends at once.
"$CTL" disable >"$T/ctl" || fail 'sbctl disable'
sleep 0.3
scrape text/plain "$T/classic" || fail 'scrape'
scrape application/openmetrics-text "$T/open" || fail 'scrape, OpenMetrics'
python3 -c 'import glob, os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(glob.glob(os.environ["SBINJECT_RUNTIME_DIR"] + "/*.sock")[0])
s.sendall(b"{\"op\":\"list\",\"histogram\":true}\n")
sys.stdout.write(s.makefile().readline())' >"$T/list.json" || fail 'the socket'
# The clock's rate becomes known better meanwhile: a sum may still grow by a billionth.
rows() { grep -v '_enabled\|^#' "$1"; }
file_agrees() { scrape text/plain "$T/classic" && cmp -s <(rows "$T/sb.prom") <(rows "$T/classic"); }
wait_for 5 file_agrees || fail "the file: $(diff "$T/sb.prom" "$T/classic")"
if command -v promtool >/dev/null; then
	promtool check metrics <"$T/classic" >"$T/check" 2>&1 || fail "promtool: $(cat "$T/check")"
	promtool check metrics <"$T/sb.prom" >"$T/check" 2>&1 || fail "promtool: $(cat "$T/check")"
fi
python3 - "$T/list.json" "$T/classic" "$T/open" <<'P' || fail 'the metrics are not what sbctl list has'
import json, re, sys
targets = {t["target"]: t for t in json.load(open(sys.argv[1]))["targets"]}
name = "sbinject_call_duration_seconds"
limits = [64 * 2**k for k in range(31)] + [float("inf")]  # ns
bounds = [ns / 1e9 for ns in limits]
for path in sys.argv[2:]:
    text = open(path).read()
    assert f"# TYPE {name} histogram\n" in text and f"# HELP {name} " in text
    assert ("# UNIT sbinject_call_duration_seconds seconds\n" in text) == path.endswith("open")
    assert "# TYPE sbinject_calls_missed gauge\n" in text
    rows = re.findall(r'^(\S+?)\{target="([^"]*)"((?:,\w+="[^"]*")*)\} (\S+)$', text, re.M)
    at = [i for i, r in enumerate(rows) if r[0].startswith(name)]
    assert at == list(range(at[0], at[-1] + 1)), "a family is in one piece"
    for target, t in targets.items():
        mine = [(n, labels, float(v)) for n, of, labels, v in rows if of == target]
        if "spans" not in t:
            assert target == ":span_ends" and not [m for m in mine if m[0].startswith(name)], mine
            continue
        spans, tree = t["spans"], f',tree="{t["pid"]}"' if "pid" in t else ""
        buckets = [(l, v) for n, l, v in mine if n == name + "_bucket"]
        assert all(l.startswith(tree + ',le="') for l, _ in buckets), buckets
        le = [float(re.search('le="(.*)"', l)[1]) for l, _ in buckets]
        assert all(a == b or abs(a / b - 1) < 1e-9 for a, b in zip(le, bounds)), le
        assert len(le) == len(bounds)
        values = [v for _, v in buckets]
        assert values == sorted(values) and values[-1] == spans["calls"], values
        get = {n: v for n, l, v in mine if l == tree}
        assert get[name + "_count"] == spans["calls"], get
        assert abs(get[name + "_sum"] - spans["inclusive_ns"] / 1e9) < 1e-6, get
        assert get["sbinject_calls_missed"] == spans["missed"], get
        if target == ":span_left":
            assert spans["calls"] == 0 < spans["missed"], spans
            continue
        # A bucket that a bound cuts counts above it.
        exact = [sum(n for _, to, n in spans["histogram"] if to <= limit) for limit in limits]
        assert values == exact, (values, exact)
        # The shortest and the longest call are on the right side of the bounds.
        assert all(v == 0 for b, v in zip(bounds, values) if b < spans["min_ns"] / 1e9), values
        assert all(v == values[-1] for b, v in zip(bounds, values) if b > spans["max_ns"] * 1.04e-9)
P
sb_stop
ended 0
unchanged "$pid"
finish spans "$pid"

# Without a timed target there is no series that reads as zero calls.
start spans "$V/spans"
attach "$pid" :span_outer 0 --metrics "$port"
await_session
wait_for 10 scrape text/plain "$T/classic" || fail 'nothing is served'
! grep 'call_duration\|calls_missed' "$T/classic" || fail 'times of a target that is not timed'
sb_stop
finish spans "$pid"
