#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A uprobe that another tool puts on the entry of a hooked function does no harm where the first
# instruction stays; nor does one that is there before: both count each call, whoever goes first.
# limit: 60 s
. "$SRC/test/lib.sh"
tracing=/sys/kernel/tracing event=sbtest$$
[ -w $tracing/uprobe_events ] || skip "no $tracing/uprobe_events: no tracefs, or a kernel without"
need readelf

cp "$V/calls" "$T/probed" # a file that no other test runs
offset=0x$(readelf -sW "$T/probed" | awk '$8 == "victim_work" { print $2; exit }')
probe() {
	echo "p:uprobes/$event $T/probed:$offset" >>$tracing/uprobe_events || fail 'no uprobe'
	echo 1 >$tracing/events/uprobes/$event/enable
}
unprobe() {
	[ ! -d $tracing/events/uprobes/$event ] || echo 0 >$tracing/events/uprobes/$event/enable
	! grep -q "/$event " $tracing/uprobe_events || echo "-:uprobes/$event" >>$tracing/uprobe_events
}
trap 'unprobe; cleanup' EXIT
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
