#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every form of a name reaches the same function.
# quick
# beside others
. "$SRC/test/lib.sh"

need nm
start calls "$V/calls" -l "$V/victim-lib.so"
snapshot "$pid"
addr=$(nm "$V/calls" | awk '$3 == "victim_work" { print "0x" $1 }')
line=$(grep -n 'x = x \* 3 + 1' "$SRC/test/victim/calls.c" | cut -d: -f1)
for target in :victim_work calls:victim_work "$V/calls:victim_work" "$V/c*s:victim_work" \
	:=victim_work ':victim_w*k' ':victim_wor?' ":$addr" ":@calls.c:$line"; do
	sb -p "$pid" "$target" 0 --for 100ms --json "$T/run.json"
	ended 0 "$target"
	more "hits of $target" "$(j targets.0.hits)" 100
done
for target in victim-lib.so:lib_fn victim-lib.so.1:lib_fn 'victim-lib*:lib_fn'; do
	sb -p "$pid" "$target" 0 --for 100ms --json "$T/run.json"
	ended 0 "$target"
	more "hits of $target" "$(j targets.0.hits)" 100
done
unchanged "$pid"
finish calls "$pid"

# An import goes to its definition, and says so; an IFUNC to the implementation in use.
start later "$V/later" "$V/victim-lib.so" 1 1 "$T/gate"
sb -p "$pid" later:access 0 --for 200ms --json "$T/run.json"
ended 0
more 'hits through an import' "$(j targets.0.hits)" 5
[[ $(j targets.0.sites.0.module) == *libc.so.6 ]] || fail 'not resolved to libc'
told libc
finish later "$pid"
sb libc.so.6:strlen 0 --json "$T/run.json" -- sh -c 'echo one two three'
ended 0
same 'an IFUNC' "$(j targets.0.outcome)" counted
