#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Without privileges, and on a kernel that does not describe its types, explain shows what /proc
# knows; the rest is null with the reason, never 0. What cannot be watched is refused.
# beside idle work
. "$SRC/test/lib.sh"
need python3
need_root
need setpriv

limited() { # REASON: what the last run says
	ended 0
	grep -q "not known: .*$1" sb.out || fail "the table does not say '$1': $(cat sb.out)"
	! grep -q '^futex' sb.out || fail "a row that is not known: $(cat sb.out)"
	python3 - run.json "$1" <<'P' || fail "the document: $(cat run.json)"
import json, re, sys
d = json.load(open(sys.argv[1]))
assert d["source"] == "proc" and re.search(sys.argv[2], d["limit"]["reason"]), d["limit"]
part = {p["reason"]: p for p in d["breakdown"]}
assert part["on_cpu"]["ns_per_item"] > 0 and part["run_queue"]["ns_per_item"] >= 0
for reason in ("futex", "io", "network", "page_fault", "sleep", "other"):
    assert part[reason]["ns_per_item"] is None and part[reason]["unknown"], part[reason]
assert d["adds_up"] is None and d["sum_ns_per_item"] is None and d["off_cpu_ns_per_item"] > 0
threads = {t["name"] for t in d["by_thread"]}
assert {"v-cpu", "v-futex"} <= threads and "v-idle" not in threads, threads
count = {c["counter"]: c["per_item"] for c in d["counters"]}
assert count["switches_voluntary"] > 0 and count["wakeups"] is None
P
}

start reasons "$V/reasons"
rc=0
setpriv --bounding-set -bpf,-perfmon,-sys_admin "$SB" explain -p "$pid" --time 1s \
	--json "$T/run.json" >sb.out 2>sb.err || rc=$?
limited 'needs root'

if unshare -m true 2>/dev/null; then
	rc=0
	# shellcheck disable=SC2016 # it expands inside
	unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' - "$SB" explain -p "$pid" \
		--time 1s --json "$T/run.json" >sb.out 2>sb.err || rc=$?
	limited 'types .BTF'
fi

refuses 2 'no process' explain --time 1s
refuses 2 'too short' explain -p "$pid" --time 1ms
refuses 2 'slows no function' explain :item -p "$pid"
refuses 2 'command that sbinject starts' explain -p "$pid" --progress stdout:x
echo 5 >count
refuses 1 'does not move' explain -p "$pid" --time 200ms --progress "file:$T/count"
finish reasons "$pid"
refuses 5 'no process' explain -p "$pid"

# A source that nothing has to be hooked for; a target that ends.
cat >"$T/counter" <<'C'
i=0
while [ ! -e "$1/end" ]; do
	i=$((i + 1))
	echo $i >"$1/new" && mv "$1/new" "$1/items"
	sleep 0.02
done
C
sh "$T/counter" "$T" &
pid=$!
pids+=("$pid")
wait_for 10 test -s items || fail 'no counter'
sb explain -p "$pid" --time 1s --progress "file:$T/items" --json "$T/run.json"
ended 0
more items "$(j items | sed 's/\..*//')" 0
touch end
wait "$pid"
exit 0
