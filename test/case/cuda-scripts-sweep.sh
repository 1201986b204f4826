#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The sweep of docs/cuda-guide.md, "From a bpftrace script": what launches cost the result, where a step waits for all
# of them, and then for the device.
# limit: 130 s
# beside idle work, two at a time
. "$SRC/test/lib.sh"
need python3
export INFERENCE_LIBS="$V"
python3 -c 'import ctypes' || skip 'Python has no ctypes'
# shellcheck disable=SC2016 # the guide's backquotes
tr '\n' ' ' <"$SRC/docs/cuda-guide.md" |
	grep -qF '`sbinject sweep cuda:launch -p PID --progress cuda:cuStreamSynchronize --time 20s`' || fail 'the guide has another command'

start server python3 "$SRC/test/victim/python/inference.py"
for _ in 1 2 3; do # what else the machine does makes it more
	sb sweep cuda:launch -p "$pid" --progress cuda:cuStreamSynchronize --time 20s --json "$T/run.json"
	! grep -qE '^cuda:cuLaunchKernel .*CRITICAL' "$T/sb.out" || break
done
grep -qE '^cuda:cuLaunchKernel .*CRITICAL' "$T/sb.out" || fail "verdict: $(cat "$T/sb.out")"
awk -v k="$(j targets.0.kappa)" 'BEGIN { exit !(k > 0.5) }' || fail "kappa $(j targets.0.kappa): $(cat "$T/sb.out")"
let_go "$pid"
finish server "$pid"
