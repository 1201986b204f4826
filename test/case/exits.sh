#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# at=exit: a function is counted and delayed as it returns. Every way out that a compiler makes is
# hooked, or the function is refused with the reason; the delay is spent behind the function's last
# work; results in registers, flags and the red zone stay; nothing is left.
# beside others
# quick
. "$SRC/test/lib.sh"

rounds=2000
"$V/exits" $rounds >"$T/plain.out" || fail 'the victim does not work'

names=(exit_early exit_tail exit_tailed exit_pointer exit_table exit_cold exit_recurse exit_jump
	exit_pair exit_double exit_last asm_nops asm_redzone asm_carry_ asm_shared asm_condition)
for mechanism in jump int3; do
	targets=()
	for name in "${names[@]}"; do
		targets+=(":$name" 300ns at=exit)
	done
	[ $mechanism = jump ] || targets+=(:asm_tight 300ns at=exit :exit_switch 300ns at=exit)
	sb "${targets[@]}" --hits-by-function --mechanism $mechanism --json "$T/run.json" \
		-- "$V/exits" $rounds
	ended 0 $mechanism
	grep -q '^self-check ok$' "$T/sb.out" || fail "$mechanism: $(cat "$T/sb.out")"
	for i in "${!names[@]}"; do
		same "$mechanism: ${names[i]}" "$(j targets."$i".hits)" "$(calls sb "${names[i]}")"
		same "$mechanism: ${names[i]} delayed" "$(j targets."$i".delayed)" "$(j targets."$i".hits)"
	done
	same "$mechanism: at" "$(j targets.0.at)" exit
	more "$mechanism: exits" "$(j targets.0.sites.#)" 2
	[ $mechanism = jump ] && continue
	same tight "$(j targets.16.hits)" "$(calls sb asm_tight)"
	same switch "$(j targets.17.hits)" "$(calls sb exit_switch)"
done

# The delay lies between the function's last work and its caller, at its entry before that work.
sb :exit_last 200us at=exit -- "$V/exits" 50
more 'at=exit: behind the work' "$(sed -n 's/^late //p' "$T/sb.out")" 199000
less 'at=exit: before the work' "$(sed -n 's/^early //p' "$T/sb.out")" 100000
sb :exit_last 200us at=entry -- "$V/exits" 50
less 'at=entry: behind the work' "$(sed -n 's/^late //p' "$T/sb.out")" 100000
more 'at=entry: before the work' "$(sed -n 's/^early //p' "$T/sb.out")" 199000

# Half of it at each end, exact in sum; a call that longjmp() ends has had one half.
targets=()
both=(exit_early exit_tail exit_pointer exit_table exit_cold exit_recurse exit_pair exit_double
	exit_last asm_nops asm_redzone asm_carry_ exit_jump)
for name in "${both[@]}"; do
	targets+=(":$name" 2us at=both)
done
sb "${targets[@]}" --json "$T/run.json" -- "$V/exits" $rounds
ended 0 both
grep -q '^self-check ok$' "$T/sb.out" || fail "both: $(cat "$T/sb.out")"
for i in "${!both[@]}"; do
	hits=$(j targets."$i".hits) injected=$(j targets."$i".injected_ns)
	[ "${both[i]}" != exit_jump ] || continue
	same "both: ${both[i]}" "$hits" "$(calls sb "${both[i]}")"
	same "both: ${both[i]} delayed" "$(j targets."$i".delayed)" "$hits"
	more "both: ${both[i]} injected" "$injected" $((hits * 1960))
	less "both: ${both[i]} injected" "$injected" $((hits * 2040))
done
same 'both: at' "$(j targets.0.at)" both
same 'both: left by longjmp' "$(j targets.12.hits)" $rounds
same 'both: left by longjmp, in halves' "$(j targets.12.delayed)" $(((rounds + $(calls sb exit_jump) + 1) / 2))
sb :exit_last 200us at=both -- "$V/exits" 50
more 'at=both: behind the work' "$(sed -n 's/^late //p' "$T/sb.out")" 99000
more 'at=both: before the work' "$(sed -n 's/^early //p' "$T/sb.out")" 99000

# Where one exit is not known or has no space, the function is hooked at none.
"$SB" list ':exit_never' at=exit ':asm_[tci]*' at=exit -- "$V/exits" >"$T/list" || fail 'list'
while read -r name words; do
	grep -q "$name .*no: .*$words" "$T/list" || fail "$name: $(cat "$T/list")"
done <<-'END'
	exit_never never returns
	asm_tight no space for a 5-byte jump
	asm_into not known to be its own
END
grep -q 'asm_carry .*jump' "$T/list" || fail "$(cat "$T/list")"

# A target at the exit beside one at the entry of the same function, and one that names it twice.
sb :exit_early 0 ':exit_earl[y]' 0 at=exit --json "$T/run.json" -- "$V/exits" $rounds
ended 0 'beside'
same 'entry' "$(j targets.0.hits)" $rounds
same 'exit' "$(j targets.1.hits)" $rounds
sb :exit_early 0 at=exit ':exit_[et]a*' 0 at=exit --json "$T/run.json" -- "$V/exits" $rounds
told 'already a site of target'
same 'the first' "$(j targets.0.hits)" $rounds

# Attached and detached while it runs: it is in a hook at nearly every detach, and goes on behind
# the instructions that it has run there already.
start exits "$V/exits" 100000000
snapshot "$pid"
live=0 # of all rounds: the machine may take a single one away
for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
	sb -p "$pid" ':exit_*' 100us at=exit --for 20ms --json "$T/run.json"
	ended 0 live
	live=$((live + $(j targets.0.hits)))
	unchanged "$pid"
done
more 'live' $live 240
# Added and removed while it runs: an island is the second patch of a site.
attach "$pid" :exit_last 0
await_session
for _ in 1 2 3 4 5; do
	"$CTL" add ':exit_[epdcjrt]*' 50us at=exit >"$T/ctl" 2>&1 || fail "add: $(cat "$T/ctl")"
	sleep 0.05
	"$CTL" remove ':exit_[epdcjrt]*' >"$T/ctl" 2>&1 || fail "remove: $(cat "$T/ctl")"
done
sb_stop
more 'added' "$(j targets.1.hits)" 100
unchanged "$pid"
finish exits "$pid"

refuses 2 'is not entry, exit or both' -p $$ :f at=middle
refuses 2 'belongs to the name of a native function' -p $$ py:a:b at=exit
refuses 2 'exclude each other' -p $$ :f at=exit inline=yes
