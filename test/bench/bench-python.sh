#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench-python.sh BUILD: what the agent adds to a call, in every CPython here.
set -u
SRC=$(cd "$(dirname "$0")/../.." && pwd) agent=$1/python/agent.so
# shellcheck source=/dev/null
. "$SRC/test/python/pythons.sh"

[ -s "$agent.stripped" ] || { echo "built without Python targets"; exit 0; }
echo
echo "Python, ns a call; all but plain: added to it"
printf '%-10s %8s %10s %8s %8s %8s %10s %10s\n' version plain unmatched closed counted 'delay 0' 1us 10us
for p in $(pythons); do
	AGENT=$(realpath "$agent") "$p" "$SRC/test/bench/bench-python.py"
done
