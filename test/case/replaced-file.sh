#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program whose file was replaced while it ran is read from what is mapped.
# beside others
. "$SRC/test/lib.sh"

need_root # /proc/PID/map_files
cp "$V/calls" "$T/prog"
start calls "$T/prog"
snapshot "$pid"
cp "$V/threads" "$T/new"
mv "$T/new" "$T/prog"
sb -p "$pid" :victim_work 1us --for 200ms --json "$T/run.json"
ended 0
more hits "$(j targets.0.hits)" 100
rm "$T/prog"
sb -p "$pid" prog:victim_work 1us --for 200ms --json "$T/run.json"
ended 0
more hits "$(j targets.0.hits)" 100
"$TOOL/textcheck" "$pid" || fail 'the text differs'
finish calls "$pid"
