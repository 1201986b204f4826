#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A function that the compiler put into its callers: its name alone is an error that says so, inline=yes
# hooks every copy and the function itself, counts and delays are exact, and a copy that loops back to
# where it begins is refused. Without debug information nothing is guessed.
# beside others
# quick
. "$SRC/test/lib.sh"

"$V/inlined" 500 >"$T/plain.out" || fail 'the victim does not work'

sb :inl_fn 0 -- "$V/inlined" 500
told "no function 'inl_fn'; it is inlined at [0-9]* places: inline=yes hooks them"

for mechanism in jump int3; do
	sb :inl_fn 1us inline=yes :inl_both 0 inline=yes --hits-by-function --mechanism $mechanism \
		--json "$T/run.json" -- "$V/inlined" 500
	ended 0 $mechanism
	same "$mechanism: inl_fn" "$(j targets.0.hits)" "$(calls sb inl_fn)"
	same "$mechanism: inl_both" "$(j targets.1.hits)" "$(calls sb inl_both)"
	more "$mechanism: copies" "$(j targets.0.sites.#)" 2
	same "$mechanism: delayed" "$(j targets.0.delayed)" "$(j targets.0.hits)"
done

# Its own loop is no call.
sb :inl_loop 0 inline=yes --mechanism int3 --json "$T/run.json" -- "$V/inlined" 500
told 'the inlined code loops back to where it begins'
same 'a loop' "$(j targets.0.outcome)" refused

"$SB" list 'inlined:inl_[fb]*' inline=yes -- "$V/inlined" >"$T/list" || fail 'list'
grep -q ' first+0x' "$T/list" && grep -q ' inl_both ' "$T/list" || fail "$(cat "$T/list")"

# What is not inlined is found as without the key; a name of nowhere is one of nowhere.
sb :first 0 inline=yes --json "$T/run.json" -- "$V/inlined" 500
same 'an ordinary function' "$(j targets.0.hits)" 1
refuses 3 "no inlined copy of 'nowhere'" -p $$ --for 1ms libc.so.6:nowhere inline=yes ||
	true
strip -g -o "$T/stripped" "$V/inlined"
sb :inl_fn 0 inline=yes -- "$T/stripped" 5
told 'no debug information'
sb :inl_fn 0 -- "$T/stripped" 5
told "has no function 'inl_fn'"

refuses 2 'belongs to the name of a native function' -p $$ :@inlined.c:10 inline=yes
refuses 2 'is neither yes nor no' -p $$ :inl_fn inline=maybe
