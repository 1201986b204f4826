#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Descendants that are there at the attach are hooked as well; --no-children leaves them.
# beside others
. "$SRC/test/lib.sh"

cat >"$T/parent.sh" <<END
"$V/calls" -r & "$V/calls" -r &
echo ready
trap 'kill %1 %2; wait; echo self-check ok; exit 0' TERM
wait
END
start parent bash "$T/parent.sh"
parent=$pid
children() { tr ' ' '\n' <"/proc/$parent/task/$parent/children" 2>/dev/null | grep .; }
grown() { for c in $(children); do cat "/proc/$c/comm"; done | grep -c '^calls$' | grep -q 2; }
wait_for 10 grown || fail 'no children'
sleep 0.2
for c in $(children); do snapshot "$c"; done
sb -p "$parent" calls:victim_work 10us --for 700ms --json "$T/run.json"
ended 0
for c in $(children); do unchanged "$c"; done
more hits "$(j targets.0.hits)" 1000
with_hits=0
for ((i = 0; i < $(j processes.#); i++)); do
	[ "$(j "processes.$i.targets.0.hits")" -gt 0 ] && with_hits=$((with_hits + 1))
done
same 'processes with hits' "$with_hits" 2

child=$(children | head -n 1)
sb -p "$parent" calls:victim_work 10us --no-children --for 300ms --json "$T/run.json"
[ "$rc" -ne 0 ] || same 'hits of children with --no-children' "$(j targets.0.hits)" 0
unchanged "$child"
kill -TERM "$parent"
wait "$parent"
