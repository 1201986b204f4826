#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The JSON document: every field of the schema, --jsonl appends, --tag, --json -.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls"
sb -p "$pid" :victim_work 1us :victim_idle 0 --for 300ms --tag run=one --tag k=v \
	--json "$T/run.json" --jsonl "$T/all.jsonl"
ended 0
same schema "$(j schema)" sbinject.run/1
same 'argv, as typed' "$(j argv.3) $(j argv.4)" ':victim_work 1us'
for path in version argv.0 host started ended wall_s backend exit targets.0.active_s \
	targets.0.overrun_ns targets.0.given_ns.p50 targets.0.given_ns.p99 targets.0.given_ns.max \
	targets.0.sites.0.module targets.0.sites.0.build_id targets.0.sites.0.pids.0 \
	targets.0.sites_refused processes.0.comm processes.0.exe processes.0.generation \
	lease_lapsed_hits stop_us.attach stop_us.detach warnings; do
	j $path >/dev/null || fail "no $path in the document"
done
same exit "$(j exit)" 0
same tags "$(j tags.run)$(j tags.k)" onev
same spec "$(j targets.0.spec)" :victim_work
same symbol "$(j targets.0.sites.0.symbol)" victim_work
same delay_ns "$(j targets.0.delay_ns)" 1000
same 'pid of the process' "$(j processes.0.pid)" "$pid"
[[ $(j targets.0.sites.0.address) == 0x* ]] || fail 'the address is no hex string'
[[ $(j started) == 20[0-9][0-9]-*T* ]] || fail "started: $(j started)"
# unknown is null, never 0
given=$(j targets.1.given_ns)
[ "$given" = null ] || same 'given of what was never called' "$(j targets.1.given_ns.mean)" null

sb -p "$pid" :victim_work 1us --for 100ms --jsonl "$T/all.jsonl"
same lines "$(wc -l <"$T/all.jsonl")" 2
same 'line 2' "$("$TOOL/jget" -l "$T/all.jsonl" 1.schema)" sbinject.run/1
sb -p "$pid" :victim_work 1us --for 100ms --json -
ended 0
cp "$T/sb.out" "$T/run.json"
same 'schema on stdout' "$(j schema)" sbinject.run/1
sb -q -p "$pid" :victim_work 1us --for 100ms
same 'stderr with -q' "$(cat "$T/sb.err")" ''
sb --json - :victim_work 0 -- true
ended 125
finish calls "$pid"
