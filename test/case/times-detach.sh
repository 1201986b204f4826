#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# time=yes: attached and let go again and again under load, and both killed in between: calls in
# progress then return as if nothing had been, and what they compute is right.
# limit: 180 s
# beside others
. "$SRC/test/lib.sh"

start exits "$V/exits" 1000000000
snapshot "$pid" -t
for ((round = 1; round <= $(rounds 12 30); round++)); do
	sb -p "$pid" ':exit_*' 0 time=yes ':asm_*' 0 time=yes at=exit --for 50ms --json "$T/run.json"
	ended 0 "round $round"
	unchanged "$pid" -t
	more 'calls' "$(j targets.0.spans.calls)" 100
	less 'calls' "$(j targets.0.spans.calls)" "$(($(j targets.0.hits) + 1))"
	less 'the longest call' "$(j targets.0.spans.max_ns)" 2000000000
done
for pause in 0.02 0.1 0.2 0.3 0.4; do
	attach "$pid" ':exit_*' 0 time=yes
	sleep $pause
	tracer=$(sed -n 's/^TracerPid:	//p' "/proc/$pid/status")
	[ "$tracer" -gt 0 ] || fail 'no tracer'
	kill -STOP "$sb_pid" # so that it cannot restore between the two
	kill -KILL "$tracer" "$sb_pid"
	wait "$sb_pid" 2>/dev/null
	"$SB" recover -p "$pid" >"$T/recover" 2>&1 || fail "recover: $(cat "$T/recover")"
	unchanged "$pid" -t
done
finish exits "$pid"

[ -x "$V/torture" ] || exit 0
start torture "$V/torture" -d 1000000 -r 500 plain recurse jump throw tail fiber exit
for ((round = 1; round <= $(rounds 8 15); round++)); do
	sb -p "$pid" ':t_*' 0 time=yes --for 50ms --json "$T/run.json"
	ended 0 "torture: round $round"
	let_go "$pid"
	same 'began' "$(($(j targets.0.spans.calls) + $(j targets.0.spans.missed)))" "$(j targets.0.hits)"
done
finish torture "$pid"
