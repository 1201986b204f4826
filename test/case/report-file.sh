#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --report of a run that ends before the first interval: the file has the final figures, those of --json.
# limit: 60 s
# beside others
# quick
. "$SRC/test/lib.sh"

compare() { # WHAT
	python3 - "$T/report.json" "$T/run.json" >report.err 2>&1 <<'P' || fail "$1: $(cat report.err)"
import json, sys
report, run = (json.load(open(p)) for p in sys.argv[1:])
assert report["schema"] == "sbinject.report/1" and report["ended"] is True and report["enabled"] is False, report
assert report["pids"] == sorted({p["pid"] for p in run["processes"]}, key=report["pids"].index), report["pids"]
assert len(report["targets"]) == len(run["targets"])
for ours, theirs in zip(report["targets"], run["targets"]):
    assert ours["target"] == theirs["spec"] and ours["hits"] == theirs["hits"] > 0, (ours, theirs)
    for key in "delayed", "injected_ns", "overrun_ns":
        assert ours[key] == theirs[key], (key, ours, theirs)
assert report["total_hits"] == sum(t["hits"] for t in run["targets"])
assert report["total_delay_ns"] == sum(t["injected_ns"] for t in run["targets"])
spans = run["targets"][0]["spans"]
assert report["targets"][0]["spans"]["calls"] == spans["calls"] > 0, (report["targets"][0], spans)
P
}

start calls "$V/calls"
snapshot "$pid"
sb -p "$pid" :victim_work 1us time=yes :victim_other 0 --for 300ms --report "$T/report.json" --json "$T/run.json"
ended 0
compare attached
unchanged "$pid"
finish calls "$pid"

rm "$T/report.json"
sb :victim_work 1us time=yes --report "$T/report.json" --json "$T/run.json" -- "$V/calls" -n 50
ended 0
compare launched
