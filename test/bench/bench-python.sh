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

# begin PYTHON [loose] [mapped]: the program
begin() {
	rm -f "$T/go"
	"$1" "$SRC/test/victim/python/many.py" 1200 "$T/go" "${@:2}" >"$T/out" 2>&1 &
	victim=$!
	until grep -q '^ready$' "$T/out"; do kill -0 $victim || return; sleep 0.1; done
}

# held PYTHON: the longest hold of the GIL at the first and the second attach, and detach, in us
held() {
	"$1" -c 'import json, sys
for name in sys.argv[1:]:
    held = json.load(open(name))["gil_held_us"]
    print("%8d %8d" % (held["attach"], held["detach"]), end=" ")' "$T/1.json" "$T/2.json"
}

# some PYTHON [loose] [mapped]: holds with targets that match some functions
some() {
	local n

	begin "$@" || return
	for n in 1 2; do
		SBINJECT_RUNTIME_DIR=$T "$BUILD/sbinject" -q -p $victim 'py:many.m*:called' 0 \
			'py:many.*:C3.*' 0 --for 200ms --json "$T/$n.json" || return
	done
	kill $victim
	wait $victim
	held "$1"
}

# every PYTHON: holds with every function, and the ms until they are in force
every() {
	local n start in_force='' status

	begin "$1" || return
	for n in 1 2; do
		start=$(date +%s%N)
		coproc sb { SBINJECT_RUNTIME_DIR=$T exec "$BUILD/sbinject" -q -p $victim 'py:*:*' 0 \
			--json "$T/$n.json" --status-fd 1; }
		status=${sb[0]}
		read -r _ <&"$status"
		in_force+=$(printf ' %8d' $((($(date +%s%N) - start) / 1000000)))
		sleep 0.2
		# shellcheck disable=SC2154 # coproc sets it
		kill -INT "$sb_PID"
		wait "$sb_PID"
	done
	kill $victim
	wait $victim
	held "$1"
	echo "$in_force"
}

BUILD=$(realpath "$1")
echo
echo 'Python, the longest hold of the GIL in us, in a program of 1200 modules (mapped: and 1000 mappings more)'
printf '%-10s %-10s %8s %8s %8s %8s\n' version heap attach detach second detach
for p in $(pythons); do
	for heap in loose frozen mapped; do
		printf '%-10s %-10s' "$("$p" -c 'import sys; print(sys.version.split()[0])')" $heap
		some "$p" $heap
		echo
	done
done
echo
echo 'Python, every function (py:*:*, about 130 000) of that program: holds in us, and ms until in force'
printf '%-10s %8s %8s %8s %8s %8s %8s\n' version attach detach second detach 'in force' second
for p in $(pythons); do
	printf '%-10s' "$("$p" -c 'import sys; print(sys.version.split()[0])')"
	every "$p"
done
