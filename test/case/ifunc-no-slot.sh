#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An IFUNC whose implementation no slot shows: its resolver is asked in a copy of the process.
# quick
# beside others
. "$SRC/test/lib.sh"

lib=$V/victim-ifunc-lib.so
# Running: found by dlsym() alone, later.
start ifunc "$V/ifunc" 3000 "$T/gate"
snapshot "$pid" -t
sb list -p "$pid" libc.so.6:wcsnlen :own_fn
ended 0
grep -qE 'wcsnlen.*0x.*jump$' "$T/sb.out" || fail "not found: $(cat "$T/sb.out")"
# A resolver that cannot be asked without doing harm is named, with the reason; no process is hurt.
refuses 3 "asks_kernel.*system call" -p "$pid" :asks_kernel 0
refuses 3 "asks_forever.*does not return" -p "$pid" :asks_forever 0
refuses 3 "asks_nobody.*0x8" -p "$pid" :asks_nobody 0
unchanged "$pid" -t
snapshot "$pid"
attach "$pid" libc.so.6:wcsnlen 0 :own_fn 0
touch "$T/gate"
wait_for 20 said ifunc '^called$' || fail 'the calls were not made'
sb_stop
ended 0
unchanged "$pid"
finish ifunc "$pid"
same 'hits of wcsnlen' "$(j targets.0.hits)" 3000
same 'hits of own_fn' "$(j targets.1.hits)" $(($(calls ifunc own_fn) - 1)) # one before the attach

# Launched: from the first call on, constructors included; the library comes by dlopen().
for mode in '' --no-follow; do
	# shellcheck disable=SC2086 # no mode, no word
	sb :own_fn 0 libc.so.6:wcsnlen 0 'victim-ifunc-lib.so:lib_chosen' 0 $mode --json "$T/run.json" \
		-- "$V/ifunc" 3000 '' "$lib"
	ended 0
	cp "$T/sb.out" "$T/ifunc.out"
	i=0
	for n in own_fn wcsnlen lib_chosen; do
		same "hits of $n $mode" "$(j targets.$i.hits)" "$(calls ifunc $n)"
		i=$((i + 1))
	done
done

[ -x "$V/ifunc-static" ] || skip 'no static C library'
start static "$V/ifunc-static" 3000 "$T/gate2"
snapshot "$pid"
attach "$pid" :own_fn 0 :memcpy 0 :strlen 0
touch "$T/gate2"
wait_for 20 said static '^called$' || fail 'the calls were not made'
sb_stop
ended 0
unchanged "$pid"
finish static "$pid"
same 'hits in a static program' "$(j targets.0.hits)" 3000
for i in 1 2; do same 'mechanism' "$(j targets.$i.sites.0.mechanism)" jump; done
sb :own_fn 0 :strlen 0 --json "$T/run.json" -- "$V/ifunc-static" 3000
ended 0
cp "$T/sb.out" "$T/static.out"
same 'hits in a static program, launched' "$(j targets.0.hits)" "$(calls static own_fn)"
same 'outcome of its strlen' "$(j targets.1.outcome)" counted
