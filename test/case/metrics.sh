#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --metrics serves what Prometheus reads, --metrics-file writes it, --events tells each change.
# beside others
. "$SRC/test/lib.sh"
need python3

port=$(free_port)
scrape() { python3 -c 'import sys, urllib.request as u
r = u.urlopen(u.Request(sys.argv[1], headers={"Accept": "application/openmetrics-text"}))
print(r.headers["Content-Type"]); sys.stdout.write(r.read().decode())' "$1"; }
value() { sed -n "s/^$1 //p" "$T/page"; }

start calls "$V/calls"
snapshot "$pid"
attach "$pid" :victim_work 2us --metrics "$port" --metrics-file "$T/sb.prom" --metrics-by-pid \
	--events "$T/events" --interval 200ms
wait_for 10 scrape "http://127.0.0.1:$port/metrics" || fail 'nothing is served'
sleep 0.5
scrape "http://127.0.0.1:$port/metrics" >"$T/page"
head -n 1 "$T/page" | grep -q '^application/openmetrics-text' || fail "type: $(head -n 1 "$T/page")"
tail -n 1 "$T/page" | grep -q '^# EOF$' || fail 'it does not end as the format wants'
hits=$(value "sbinject_hits_total{target=\":victim_work\",pid=\"$pid\"}")
more 'hits served' "${hits%.*}" 100
value 'sbinject_delay_seconds{target=":victim_work"}' | grep -q '2.*e-06' || fail 'the delay'
value 'sbinject_target_state{target=":victim_work",sbinject_target_state="on"}' | grep -q '^1$' || fail 'its state'
same processes "$(value sbinject_processes)" 1
scrape "http://127.0.0.1:$port/report" | sed 1d >report.json
same 'evidence in the report of a session without it' "$("$TOOL/jget" report.json evidence.available)" false
grep -q '"limit": "the session has no --evidence"' report.json || fail "report: $(cat report.json)"
more 'hits in the report' "$("$TOOL/jget" report.json targets.0.hits)" 100
! scrape "http://127.0.0.1:$port/nowhere" >/dev/null 2>&1 || fail 'a page that is not there'
grep -q '^sbinject_hits_total' "$T/sb.prom" || fail "no file: $(cat "$T/sb.prom")"
"$CTL" disable >/dev/null && "$CTL" enable >/dev/null && "$CTL" update :victim_work 5us >/dev/null &&
	"$CTL" delay 4us >/dev/null || fail 'sbctl'
sb_stop
ended 0
for what in attached disable enable update delay detaching detached; do
	grep -q "\"event\":\"$what\"" "$T/events" || fail "no event $what: $(cat "$T/events")"
done
python3 - "$T/events" <<'P' || fail 'the events are not in order'
import json, sys
e = [json.loads(l) for l in open(sys.argv[1])]
assert all(a["monotonic_s"] <= b["monotonic_s"] for a, b in zip(e, e[1:])) and e[0]["realtime_s"] > 1e9
P
unchanged "$pid"

# Events without a request are written, too: windows that open and close.
rm "$T/events"
sb -p "$pid" :victim_work 2us start=100ms for=200ms every=3 "$V/victim-lib.so:lib_fn" 0 --for 500ms \
	--events "$T/events"
ended 0
python3 - "$T/events" <<'P' || fail "windows in the events: $(cat "$T/events")"
import json, sys
e = [json.loads(l) for l in open(sys.argv[1])]
mine = [x["event"] for x in e if x.get("target", ":victim_work") == ":victim_work"]
assert mine == ["attached", "hooked", "open", "close", "detaching", "detached"], mine
at = {x["event"]: x for x in e if x.get("target") == ":victim_work"}
assert at["open"]["delay_ns"] == 2000 and at["open"]["every"] == 3
assert not [x for x in e if "lib_fn" in x.get("target", "") and x["event"] == "hooked"]
P
unchanged "$pid"

# A port that is taken is an error before anything is hooked for good.
python3 -c 'import socket, sys, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(); print("ready", flush=True); time.sleep(60)' "$port" >"$T/holder.out" &
pids+=("$!")
wait_for 10 said holder '^ready$' || fail 'the port was not taken'
refuses 1 'metrics.*in use' -p "$pid" :victim_work 0 --metrics "$port"
refuses 2 'address and port' -p "$pid" :victim_work 0 --metrics nonsense
unchanged "$pid"

# Events that cannot be written are an error beforehand, too; a reader that sleeps holds no thread.
refuses 1 'cannot be written' -p "$pid" :victim_work 0 --events "$T/nowhere/events"
mkfifo "$T/pipe"
refuses 1 'cannot write' -p "$pid" :victim_work 0 --events "$T/pipe"
refuses 1 'cannot write' trace -p "$pid" :victim_work --events "$T/pipe" -o "$T/calls.jsonl"
sleep 60 <>"$T/pipe" &
pids+=("$!")
attach "$pid" :victim_work 0 --events "$T/pipe"
await_session
for i in $(seq 3000); do echo "update :victim_work $i"; done | timeout 20 "$CTL" - >"$T/many" ||
	fail 'a pipe without a reader holds the session'
same 'changes made' "$(wc -l <"$T/many")" 3000
sb_stop
ended 0
same 'lapsed hits' "$(j lease_lapsed_hits)" 0
unchanged "$pid"
finish calls "$pid"
