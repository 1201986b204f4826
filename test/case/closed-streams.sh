#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Started with closed standard streams (cron, a service): no pipe and no socket is taken for one of
# them, a --daemon comes to its end, and a command finds closed what was closed.
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls"
snapshot "$pid"
timeout 20 "$SB" --daemon -p "$pid" :victim_work 1us <&- >&- 2>&- || fail "--daemon: $?"
timeout 20 "$CTL" list <&- >"$T/ctl.out" 2>&- || fail "list: $?"
grep -q '^:victim_work delay_ns=1000 hits=' "$T/ctl.out" || fail "list: $(cat "$T/ctl.out")"
rc=0
timeout 20 "$CTL" status <&- >&- 2>"$T/ctl.err" || rc=$?
same 'status of sbctl without an output' "$rc" 1
timeout 20 "$CTL" update :victim_work 2us <&- >"$T/ctl.out" || fail 'the session was hurt'
same 'what it says' "$(cat "$T/ctl.out")" 'Updated target: :victim_work delay=2000 ns'
"$CTL" stop >"$T/ctl.out" || fail stop
unchanged "$pid"
# shellcheck disable=SC2016
timeout 20 "$SB" :victim_work 0 --json "$T/run.json" -- sh -c 'for i in 0 1 2; do
	[ ! -e /proc/$$/fd/$i ] || exit 9; done; exec "$0" -n 50 >"$1" 2>&1' "$V/calls" "$T/closed.out" \
	<&- >&- 2>&- || fail "a command: $?"
same hits "$(j targets.0.hits)" 50
finish calls "$pid"
