#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench-python.sh BUILD: what the agent adds to a call, in every CPython here, and how long it keeps a
# program of many modules waiting.
set -u
SRC=$(cd "$(dirname "$0")/../.." && pwd) agent=$1/python/agent.so
# shellcheck source=/dev/null
. "$SRC/test/python/pythons.sh"

[ -s "$agent.stripped" ] || { echo "built without Python targets"; exit 0; }
echo
echo "Python, ns a call; all but plain: added to it"
printf '%-10s %8s %10s %8s %8s %8s %10s %10s\n' version plain unmatched closed counted 'delay 0' 1us 10us
for p in $(pythons); do
	AGENT=$(realpath "$agent") "$p" "$SRC/test/bench/bench-python.py" || exit 1
done

T=$(mktemp -d) victim=''
trap 'kill $victim 2>/dev/null; rm -rf "$T"' EXIT

# held PYTHON [loose] [mapped]: the longest hold of the GIL at the first and the second attach, and detach, in us
held() {
	local n

	"$1" "$SRC/test/victim/python/many.py" 1200 "$T/go" "${@:2}" >"$T/out" 2>&1 &
	victim=$!
	until grep -q '^ready$' "$T/out"; do kill -0 $victim || return; sleep 0.1; done
	for n in 1 2; do
		SBINJECT_RUNTIME_DIR=$T "$BUILD/sbinject" -q -p $victim 'py:many.m*:called' 0 \
			'py:many.*:C3.*' 0 --for 200ms --json "$T/$n.json" || return
	done
	kill $victim
	wait $victim
	"$1" -c 'import json, sys
for name in sys.argv[1:]:
    held = json.load(open(name))["gil_held_us"]
    print("%8d %8d" % (held["attach"], held["detach"]), end=" ")' "$T/1.json" "$T/2.json"
}

BUILD=$(realpath "$1")
echo
echo 'Python, the longest hold of the GIL in us, in a program of 1200 modules (mapped: and 1000 mappings more)'
printf '%-10s %-10s %8s %8s %8s %8s\n' version heap attach detach second detach
for p in $(pythons); do
	for heap in loose frozen mapped; do
		printf '%-10s %-10s' "$("$p" -c 'import sys; print(sys.version.split()[0])')" $heap
		held "$p" $heap
		echo
	done
done
