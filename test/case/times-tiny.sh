#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# time=yes of functions so short that the hook of their entry covers an exit, and of those that leave by
# a conditional jump, run on into the next function, or have space for one exit's hook only: each call is
# timed, in signal handlers as well; results are right, also while hooks come and go and after a SIGKILL;
# at=both spends half of the delay at each end.
# limit: 120 s
. "$SRC/test/lib.sh"

[ "$(uname -m)" = x86_64 ] || skip 'functions in assembly'
names=(ret load tail pointer table one either cond short both pid far on over into twin fill left)
targets=()
for name in "${names[@]}"; do
	targets+=(":tiny_$name" 0 time=yes)
done
"$V/tiny" 1000 >"$T/plain" || fail "the victim does not work: $(cat "$T/plain")"

sb "${targets[@]}" --json "$T/run.json" -- "$V/tiny" 30000
ended 0
grep -q '^self-check ok$' "$T/sb.out" || fail "$(cat "$T/sb.out" "$T/sb.err")"
for i in "${!names[@]}"; do
	name=${names[i]}
	! grep -q "not timed: .* of :tiny_$name:" "$T/sb.err" || fail "$name: is not timed"
	same "$name: calls" "$(j targets."$i".spans.calls)" "$(calls sb "tiny_$name")"
	same "$name: missed" "$(j targets."$i".spans.missed)" 0
done
for i in 16 17; do
	read -r own least < <(sed -n "s/^own tiny_${names[i]} //p" "$T/sb.out")
	less "${names[i]}: its time" "$(j targets.$i.spans.inclusive_ns)" "$((own + 1000000))"
	more "${names[i]}: its time" "$(j targets.$i.spans.inclusive_ns)" "$((least / 2))"
done

targets=()
for name in "${names[@]}"; do
	targets+=(":tiny_$name" 1us at=both)
done
sb "${targets[@]}" --json "$T/run.json" -- "$V/tiny" 3000
ended 0 both
grep -q '^self-check ok$' "$T/sb.out" || fail "both: $(cat "$T/sb.out" "$T/sb.err")"
for i in "${!names[@]}"; do
	hits=$(j targets."$i".hits)
	same "both: ${names[i]}" "$hits" "$(calls sb "tiny_${names[i]}")"
	same "both: ${names[i]} delayed" "$(j targets."$i".delayed)" "$hits"
	more "both: ${names[i]} injected" "$(j targets."$i".injected_ns)" $((hits * 970))
done

start tiny "$V/tiny" 1000000000 / still
snapshot "$pid"
timed=0 # of all rounds: the machine may take a single one away
for round in {1..15}; do
	sb -p "$pid" ':tiny_*' 0 time=yes --for 30ms --json "$T/run.json"
	ended 0 "round $round"
	unchanged "$pid"
	timed=$((timed + $(j targets.0.spans.calls)))
	less 'missed' "$(j targets.0.spans.missed)" 32 # in progress at either end
	sb -p "$pid" ':tiny_*' 10us at=both --for 20ms
	ended 0 "round $round: both"
	unchanged "$pid"
done
more 'calls' $timed 1000
attach "$pid" ':tiny_[lop]*' 0 time=yes
await_session
for _ in 1 2 3 4 5; do
	"$CTL" add ':tiny_[rtesb]*' 20us at=both >"$T/ctl" 2>&1 || fail "add: $(cat "$T/ctl")"
	sleep 0.05
	"$CTL" remove ':tiny_[rtesb]*' >"$T/ctl" 2>&1 || fail "remove: $(cat "$T/ctl")"
done
sb_stop
unchanged "$pid"
for pause in 0.2 0.3 0.5; do
	attach "$pid" ':tiny_*' 0 time=yes
	sleep $pause
	tracer=$(sed -n 's/^TracerPid:	//p' "/proc/$pid/status")
	[ "$tracer" -gt 0 ] || fail "no tracer"
	kill -STOP "$sb_pid" # so that it cannot restore between the two
	kill -KILL "$tracer" "$sb_pid"
	wait "$sb_pid" 2>/dev/null
	"$SB" recover -p "$pid" >"$T/recover" 2>&1 || fail "recover: $(cat "$T/recover")"
	unchanged "$pid"
done
finish tiny "$pid"
