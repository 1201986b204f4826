#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where few items fit into a window nothing is lost by rounding to whole ones: windows begin and end
# right after an item. (Cut at any moment, a window of ten would be a tenth of an item's time off.)
# limit: 120 s
# beside idle work, two at a time
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"

start serial "$V/sweep-shapes" serial item=4000 rest=1
snapshot "$pid"
finds CRITICAL "$pid" :crit --progress :item --time 6s
python3 - "$T/sweep.json" <<'P' || fail 'time per item scatters as if items were cut'
import json, statistics, sys

windows = [w for w in json.load(open(sys.argv[1]))["windows"] if w["stage"] == "main" and w["arm"] == "sham"]
items = statistics.median(w["items"] for w in windows)
times = [w["t_ns"] for w in windows]
middle = statistics.median(times)
scatter = statistics.median(abs(t - middle) for t in times) / middle
print(f"{len(windows)} windows of {items} items of {middle / 1e6:.3f} ms, scatter {scatter:.5f}")
assert len(windows) >= 16 and 4 <= items <= 30
assert scatter < 0.01
P
unchanged "$pid"
finish serial "$pid"
