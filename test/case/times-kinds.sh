#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# time=yes beside the rest: every way out that a compiler makes, a delay at the entry and at the exit, which is exact and in no call's time, exec, fork, and a thread.
# limit: 90 s
. "$SRC/test/lib.sh"

names=(exit_early exit_tail exit_tailed exit_pointer exit_table exit_cold exit_recurse exit_jump
	exit_pair exit_double exit_last asm_nops asm_redzone asm_carry_ asm_shared)
rounds=2000
targets=()
for name in "${names[@]}"; do
	targets+=(":$name" 0 time=yes)
done
sb "${targets[@]}" --json "$T/run.json" -- "$V/exits" $rounds
ended 0 exits
grep -q '^self-check ok$' "$T/sb.out" || fail "exits: $(cat "$T/sb.out")"
timed=0
for i in "${!names[@]}"; do
	what="exits: ${names[i]}"
	[ "$(j "targets.$i.sites_untimed.#" 2>/dev/null || echo 0)" -eq 0 ] || continue
	timed=$((timed + 1))
	same "$what: began" "$(($(j "targets.$i.spans.calls") + $(j "targets.$i.spans.missed")))" \
		"$(j "targets.$i.hits")"
	[ "${names[i]}" = asm_shared ] || # another function jumps into it
		same "$what: returned" "$(j "targets.$i.spans.calls")" "$(calls sb "${names[i]}")"
done
more "exits: timed" $timed 10
refuses 125 'int3 exclude each other' :exit_early 0 time=yes --mechanism int3 -- "$V/exits" 1

# The call's time is none of its delay, at the entry or at the exit; the delay is at its place.
for at in entry exit; do
	sb :exit_last 200us at=$at time=yes --json "$T/run.json" -- "$V/exits" 100
	ended 0 "$at"
	same "$at: hits" "$(j targets.0.hits)" 100
	same "$at: calls" "$(j targets.0.spans.calls)" 100
	same "$at: delayed" "$(j targets.0.delayed)" 100
	less "$at: median" "$(j targets.0.spans.p50_ns)" 50000
	less "$at: nearly all" "$(j targets.0.spans.p90_ns)" 100000
	more "$at: given" "$(j targets.0.injected_ns)" 19800000
	less "$at: given" "$(j targets.0.injected_ns)" 20200000
	early=$(sed -n 's/^early //p' "$T/sb.out")
	late=$(sed -n 's/^late //p' "$T/sb.out")
	[ $at = entry ] || more "$at: behind the work" "$late" 199000
	[ $at = exit ] || more "$at: before the work" "$early" 199000
	less "$at: on the other side" "$((early < late ? early : late))" 100000
done

# A program that execs itself: all that it was.
sb :chain_fn 0 time=yes --json "$T/run.json" -- "$V/chain" 200 6 leader
ended 0 exec
same 'exec: calls' "$(j targets.0.spans.calls)" "$(j targets.0.hits)"
same 'exec: missed' "$(j targets.0.spans.missed)" 0
more 'exec: calls' "$(j targets.0.spans.calls)" 1000

# Children that are forked all the time.
start forker "$V/forker" "$T/trouble"
snapshot "$pid"
sb -p "$pid" :fork_work 0 time=yes --for 400ms --json "$T/run.json"
ended 0 fork
more 'fork: processes' "$(j processes.#)" 5
more 'fork: calls' "$(j targets.0.spans.calls)" 1000
# A child that is killed by nothing ends outside of a call; the parent may be in one.
[ "$(j targets.0.spans.missed)" -le 4 ] || fail "fork: missed: $(j targets.0.spans.missed)"
unchanged "$pid"
finish forker "$pid"
[ ! -s "$T/trouble" ] || fail "a child went wrong: $(cat "$T/trouble")"

# One thread of four.
[ -x "$V/torture" ] || exit 0
sb ':t_leaf' 0 time=yes thread=torture-1 :t_outer 0 time=yes --json "$T/run.json" -- \
	"$V/torture" -d 400 -t 4 plain
ended 0 thread
same 'thread: began' "$(($(j targets.0.spans.calls) + $(j targets.0.spans.missed)))" "$(j targets.0.hits)"
more 'thread: calls' "$(j targets.0.spans.calls)" 100
less 'thread: calls' "$(j targets.0.spans.calls)" "$(j targets.1.spans.calls)"
less 'thread: missed' "$(j targets.0.spans.missed)" 2
