#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program whose functions, threads and own name hold line ends, escapes, quotes, markup and bytes that are no
# UTF-8: no output is broken by them, none acts on a terminal, and none loses a function.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
need python3
command -v "${CC:-cc}" >/dev/null || skip 'no C compiler'

cat >"$T/make.py" <<'P'
import subprocess, sys
out, cc = sys.argv[1:]
NASTY = [b"n_\"><script>alert(1)</script>", b"n_\x1b]0;owned\x07", b"n_\xc2\x9b31m", b"n_\xff\xfe",
         b"n_\nsbinject_hits_total{target=\"x\"} 99", b"n_,b;\"c\"\td e", b"n_%s%n%n", b"n_\\\"}] 1\\n", b"n_';|`id`$(id)",
         b"n_\r\n\r\n<svg onload=x>", b"n_]]>&amp;<!--"]
SIZE = 48
names = [b"placeholder_%02d" % i + b"_" * (SIZE - 14) for i in range(len(NASTY))]
code = "#define _GNU_SOURCE\n#include <pthread.h>\n#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\n" \
       "static volatile sig_atomic_t over;\nstatic volatile unsigned long sum;\n" \
       "static void end(int s) { (void)s; over = 1; }\n"
for n in names:
    code += f"__attribute__((noinline)) void {n.decode()}(void) {{ for (int i = 0; i < 50; i++) sum += i; }}\n"
code += "int main(void) { signal(SIGTERM, end); pthread_setname_np(pthread_self(), \"\\\"}\\n\\x1b]0;<b>\");" \
        " printf(\"ready\\n\"); fflush(stdout); while (!over) {" + \
        "".join(f" {n.decode()}();" for n in names) + " usleep(1000); } printf(\"self-check ok\\n\"); }\n"
subprocess.run([cc, "-O1", "-pthread", "-x", "c", "-", "-o", out], input=code.encode(), check=True)
image = open(out, "rb").read()
for n, bad in zip(names, NASTY):
    assert image.count(n) == 1 and len(bad) < SIZE
    image = image.replace(n, bad + b"x" * (SIZE - len(bad)))
open(out, "wb").write(image)
P
python3 "$T/make.py" "$T/names" "${CC:-cc}" || fail 'the program could not be made'
N=11

start names "$T/names"
snapshot "$pid"
plain() { # FILE...: no control character but the line's end and, in its place, the tab
	local f

	for f; do
		[ -s "$f" ] || fail "$f is empty"
		! LC_ALL=C grep -nP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$f" >"$T/controls" ||
			fail "$f has control characters: $(cat -v "$T/controls" | head -n 3)"
	done
}

# A run: the table, JSON, events, metrics, names for perf, sbctl.
port=$(free_port)
sb_start -p "$pid" ':n_*' 1us --hits-by-function --json "$T/run.json" --jsonl "$T/run.jsonl" \
	--events "$T/events" --metrics "$port" --metrics-file "$T/metrics" --report "$T/report.json" --interval 200ms \
	--perf-map
await_session
wait_for 20 test -s "$T/metrics"
sleep 0.5
"$CTL" list --functions >"$T/ctl.list" 2>&1 || "$CTL" list >"$T/ctl.list" 2>&1 || fail "sbctl: $(cat "$T/ctl.list")"
cp "/tmp/perf-$pid.map" "$T/perf.map" || fail 'no perf map'
sb_stop
ended 0
plain sb.err ctl.list events run.json run.jsonl report.json metrics perf.map
python3 - $N >compared 2>&1 <<'P' || fail "run: $(cat compared)"
import json, re, sys
n = int(sys.argv[1])
run = json.load(open("run.json"))
sites = run["targets"][0]["sites"]
assert len(sites) == n and all(s["hits"] > 0 for s in sites), sites
assert len({s["symbol"] for s in sites}) == n
assert json.loads(open("run.jsonl").read().strip()) and json.load(open("report.json"))["ended"]
for line in open("events"):
    json.loads(line)
sample = re.compile(r'^[a-z_]+(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})? [0-9.e+-]+$')
for line in open("metrics", encoding="utf-8"):
    assert line.startswith("#") or sample.match(line.rstrip("\n")), line
for line in open("perf.map", encoding="utf-8"):
    assert re.match(r"^[0-9a-f]+ [0-9a-f]+ \S", line), line
P

# A trace in each format, and what report makes of it.
for format in json jsonl pftrace; do
	sb trace -p "$pid" ':n_*' -o "$T/t.$format" --for 300ms
	ended 0 "$format"
	plain sb.err
	sb report "$T/t.$format" --slowest 20 --gaps --timeline
	ended 0 "report $format"
	plain sb.out
	sb report "$T/t.$format" --folded "$T/folded.$format" --svg "$T/$format.svg" --json "$T/report.$format.json"
	ended 0 "report $format"
	plain "folded.$format" "$format.svg" "report.$format.json"
	sb report "$T/t.$format" -o "$T/again.$format.jsonl"
	ended 0 "conversion of $format"
done
python3 - $N >compared 2>&1 <<'P' || fail "trace: $(cat compared)"
import json, re, sys
import xml.etree.ElementTree as tree
n = int(sys.argv[1])
functions = None
for f in "json", "jsonl", "pftrace":
    report = json.load(open(f"report.{f}.json"))
    names = {x["name"] for x in report["functions"]}
    assert len(names) == n, (f, names)
    assert functions in (None, names), (f, functions ^ names)
    functions = names
    stacks = set()
    for line in open(f"folded.{f}", encoding="utf-8"):
        stack, ns = line.rstrip("\n").rsplit(" ", 1)
        assert int(ns) >= 0
        stacks.add(stack.count(";"))
    assert len(stacks) == 1, (f, stacks)  # no name makes a frame
    for e in tree.parse(f"{f}.svg").iter():
        assert not e.tag.endswith("script") or "alert" not in (e.text or ""), f
        assert not any(k.startswith("on") and "x" == v for k, v in e.attrib.items()), e.attrib
    seen = set()
    for line in open(f"again.{f}.jsonl", encoding="utf-8"):
        event = json.loads(line)
        if "dur_us" in event:
            seen.add(event["name"])
    assert len(seen) == n, (f, seen)
assert len(json.load(open("t.json"))) >= n
P

# A sweep: its page and its table.
sb sweep -p "$pid" ':n_\"*' --progress ':n_%*' --time 4s --html "$T/s.html" --csv "$T/s.csv" --json "$T/s.json" || true
[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "sweep: $rc $(cat sb.err)"
sed 's/\r$//' s.csv >s.lines # RFC 4180
plain s.html s.lines sb.out
! grep -q '<script>alert' s.html || fail 'a name is markup in the page'
unchanged "$pid"
finish names "$pid"
