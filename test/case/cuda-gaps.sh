#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# report on a trace of launches: by thread their number, the gaps between them and the waits, against
# the program's own clock and the driver's own log.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"

ROUNDS=60
sb trace cuda --json "$T/run.json" -o "$T/t.pftrace" -- "$V/cuda" -t 3 -n $ROUNDS -u 200000 "$V/libcuda.so.1"
ended 0
said sb '^self-check ok$' || fail "the program: $(cat "$T/sb.out")"
took() { sed -n "s/^took $1 //p" "$T/sb.out"; }
own=$(took gaps)
waits=$(took sync)
same 'no call lost' "$(j trace.lost)" 0
calls=$(j cuda.launches)
for kind in launch sync memcpy; do
	p50=$(j cuda.kinds.$kind.p50_ns) p90=$(j cuda.kinds.$kind.p90_ns) p99=$(j cuda.kinds.$kind.p99_ns)
	((p50 <= p90 && p90 <= p99)) || fail "quantiles of $kind: $p50 $p90 $p99"
done
# Each wait sleeps for 300 us: no quantile is less.
[ "$(j cuda.kinds.sync.p50_ns)" -ge 290000 ] || fail "median wait: $(j cuda.kinds.sync.p50_ns)"
awk -v r="$(j cuda.launches_per_s)" -v k="$(j cuda.kinds.launch.calls_per_s)" -v n="$calls" \
	-v s="$(j wall_s)" 'BEGIN { exit !(r == k && r * s > 0.5 * n) }' ||
	fail "launches/s: $(j cuda.launches_per_s) for $calls in $(j wall_s) s"
same 'bytes of a kind' "$(j cuda.kinds.memcpy.bytes)" "$(j cuda.transferred_bytes)"
told '^cuda  *calls  *calls/s  *bytes  *time  *p50  *p90  *p99  *missed$'
told "^launch  *$calls "

"$SB" report "$T/t.pftrace" >"$T/report.out" || fail 'report'
grep -q '^launches by thread ' "$T/report.out" || fail "no launches in: $(cat "$T/report.out")"
"$SB" report "$T/t.pftrace" --json "$T/run.json" >/dev/null || fail 'report --json'
same threads "$(j cuda.threads.#)" 3
total=0 waited=0 within=0
for i in 0 1 2; do
	t=cuda.threads.$i
	same 'preset' "$(j $t.preset)" cuda
	same launches "$(j $t.launches)" $((3 * ROUNDS))
	same gaps "$(j $t.gaps.n)" $((3 * ROUNDS - 1))
	same waits "$(j $t.syncs.n)" $ROUNDS
	same overlapping "$(j $t.overlapping)" 0
	# Two gaps of three are between launches alone, the third has a wait of 300 us and a sleep of 200 us.
	[ "$(j $t.gaps.p50_ns)" -lt "$(j $t.gaps.p90_ns)" ] || fail "gaps: $(j $t.gaps)"
	[ "$(j $t.gaps.p90_ns)" -ge 480000 ] || fail "long gaps: $(j $t.gaps.p90_ns)"
	[ "$(j $t.gaps.waited_ns)" -ge $(((ROUNDS - 1) * 290000)) ] || fail "waits in gaps: $(j $t.gaps.waited_ns)"
	[ "$(j $t.gaps.waited_ns)" -lt "$(j $t.gaps.total_ns)" ] || fail "waits in gaps: $(j $t.gaps)"
	awk -v s="$(j $t.sync_share)" 'BEGIN { exit !(s > 0 && s < 1) }' || fail "share: $(j $t.sync_share)"
	total=$((total + $(j $t.gaps.total_ns)))
	waited=$((waited + $(j $t.syncs.total_ns)))
	within=$((within + $(j $t.gaps.waited_ns)))
done
# The program's clock stops before the call and starts behind it, so it holds the call's way there
# and back; the trace's gaps hold the measurement. Sleeps are most of both.
awk -v a="$total" -v b="$own" 'BEGIN { exit !(a > 0.9 * b && a < 1.1 * b) }' ||
	fail "gaps: $total ns in the trace, $own by the program"
[ "$waited" -le "$waits" ] || fail "waited: $waited ns in the trace, $waits by the program"
[ "$waited" -ge $((waits * 9 / 10)) ] || fail "waited: $waited ns in the trace, $waits by the program"
[ "$within" -le "$waited" ] || fail "waits in gaps: $within of $waited"

# Where calls are missing, gaps are not known, and say why; launches of the trace are still counted.
"$SB" report "$T/t.pftrace" -o "$T/t.jsonl" || fail 'conversion'
head -n -1 "$T/t.jsonl" >"$T/cut.jsonl"
"$SB" report "$T/cut.jsonl" --json "$T/run.json" >"$T/cut.out" || fail 'report of a part'
same 'gaps of a part' "$(j cuda.threads.0.gaps)" null
j cuda.threads.0.gaps_reason | grep -q 'no end' || fail "reason: $(j cuda.threads.0.gaps_reason)"
same 'launches of a part' "$(j cuda.threads.0.launches)" $((3 * ROUNDS))
grep -q '^gaps between launches are not known: ' "$T/cut.out" || fail "the text: $(cat "$T/cut.out")"

# A trace without such functions has no such part.
"$SB" report "$SRC/test/case/report.jsonl" --json "$T/run.json" >/dev/null || fail 'report of another trace'
same 'no launches' "$(j cuda)" ''
