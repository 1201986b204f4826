#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A uprobe that another tool puts on the entry of a hooked function does no harm where the first
# instruction stays; nor does one that is there before: both count each call, in whatever order they
# come. Elsewhere a function that has one is refused, with the tool's name; doctor names it, too.
# limit: 60 s
. "$SRC/test/lib.sh"
tracing=/sys/kernel/tracing event=sbtest$$
[ -w $tracing/uprobe_events ] || skip "no $tracing/uprobe_events: no tracefs, or a kernel without"
need readelf

cp "$V/calls" "$T/probed" # a file that no other test runs
offset=0x$(readelf -sW "$T/probed" | awk '$8 == "victim_work" { print $2; exit }')
probe() {
	echo "p:uprobes/$event $T/${1:-probed}:$offset" >>$tracing/uprobe_events || fail 'no uprobe'
	echo 1 >$tracing/events/uprobes/$event/enable
}
unprobe() {
	[ ! -d $tracing/events/uprobes/$event ] || echo 0 >$tracing/events/uprobes/$event/enable
	! grep -q "/$event " $tracing/uprobe_events || echo "-:uprobes/$event" >>$tracing/uprobe_events
}
at_end 'unprobe; cleanup'
probed() { awk -v e=$event '$2 == e { print $3 }' $tracing/uprobe_profile; }

start before "$T/probed" -r
target=$pid
attach "$target" :victim_work 0
probe
sleep 1
more 'hits of the uprobe' "$(probed)" 100
kill -0 "$target" || fail 'the uprobe over the hook ended the target'
unprobe
sleep 0.3
sb_stop
ended 0
let_go "$target" # the kernel keeps a page of its own there, for uprobes
hits=$(j targets.0.hits)
finish before "$target"
more 'hits beside a uprobe' "$hits" 1000

# perf enables the event without tracefs: doctor names it while perf records, and not before.
if command -v perf >/dev/null && [ "$(id -u)" -eq 0 ]; then
	start perf "$T/probed" -r
	target=$pid
	echo "p:uprobes/$event $T/probed:$offset" >>$tracing/uprobe_events || fail 'no uprobe'
	by_perf() { "$SB" doctor -p "$target" | grep -q "uprobes of another tool  *an event of tracefs, on by perf: $T/probed, 1 place$"; }
	! by_perf || fail 'doctor names an event that no tool has enabled'
	perf record -q -e "uprobes:$event" -p "$target" -o "$T/perf.data" >/dev/null 2>&1 &
	recorder=$!
	pids+=("$recorder")
	wait_for 10 by_perf || fail "perf is not named: $("$SB" doctor -p "$target")"
	kill -INT "$recorder"
	wait "$recorder"
	unprobe
	finish perf "$target"
fi

start after "$T/probed" -n 100000 -g "$T/gate" -w
target=$pid
probe
attach "$target" :victim_work 0
touch "$T/gate"
all_probed() { [ "$(probed)" = 100000 ]; }
wait_for 30 all_probed || fail "the uprobe has $(probed) hits of 100000"
sb_stop
ended 0
unprobe
let_go "$target"
finish after "$target"
same 'hits behind a uprobe' "$(j targets.0.hits)" 100000

# A function whose only instruction must go.
cp "$V/last-byte" "$T/one"
offset=0x$(readelf -sW "$T/one" | awk '$8 == "last_ret" { print $2; exit }')
touch "$T/gate"
start one "$T/one" 1000000000000 "$T/gate"
target=$pid
probe one
sb -p "$target" :last_ret 0 --for 300ms
ended 3
grep -q 'last_ret: another tool has put a breakpoint there.* its file has uprobes of tracefs$' sb.err ||
	fail "not named: $(cat sb.err)"
"$SB" doctor -p "$target" >"$T/doctor.out"
grep -q "uprobes of another tool  *tracefs: $T/one, 1 place$" "$T/doctor.out" || fail "$(cat "$T/doctor.out")"
unprobe
if "$SB" doctor | grep -q '^  uprobe  *yes'; then
	"$SB" -q --backend uprobe -p "$target" :last_ret 0 --for 20s 2>"$T/uprobe.err" &
	ours=$!
	named() { "$SB" doctor -p "$target" | grep -q "uprobes of another tool  *sbinject-tracer (pid [0-9]*): $T/one, [0-9]"; }
	wait_for 15 named || fail "$("$SB" doctor -p "$target")"
	kill -INT $ours
	wait $ours || fail "the uprobe session: $(cat "$T/uprobe.err")"
fi
let_go "$target"
finish one "$target"
