#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# demo.sh BUILD: slows one function of a running program and shows what becomes of its
# throughput before, during and after.
set -eu
build=$1
sb=$build/sbinject
out=$(mktemp)
victim=''
end() {
	if [ -n "$victim" ]; then
		kill -TERM "$victim" 2>/dev/null || :
		wait "$victim" 2>/dev/null || :
	fi
	rm -f "$out"
}
trap end EXIT

throughput() { # from the lines after number $1
	tail -n "+$(($1 + 1))" "$out" | awk '/items/ { s += $1; n++ } END { printf "%9d items/s", n ? s / n : 0 }'
}
lines() { wc -l <"$out"; }

"$build/test/victim/demo" 2 >"$out" &
victim=$!
echo "A program with 2 working threads runs as process $victim; each item is a call of work_item()."
sleep 2.1
before=$(throughput 1)
echo "before:  $before"
echo
echo "\$ sbinject -p $victim :work_item 5us --for 3s"
from=$(($(lines) + 1))
"$sb" -p "$victim" :work_item 5us --for 3s || {
	echo "the attach failed; what this machine allows: $sb doctor" >&2
	exit 1
}
to=$(lines)
during=$(tail -n "+$((from + 1))" "$out" | head -n $((to - from - 1)) |
	awk '{ s += $1; n++ } END { printf "%9d items/s", n ? s / n : 0 }')
from=$(($(lines) + 1))
sleep 2.1
echo
echo "before:  $before"
echo "during:  $during   5 us more a call, on each thread"
echo "after:   $(throughput "$from")   detached: nothing is left in the process"
