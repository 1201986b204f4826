#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the machine code of the agent must be so that it can be loaded anywhere and unloaded under
# running frames: no library needed, no versioned symbol, frames handed on by a jump.
# beside others
. "$SRC/test/lib.sh"
need objdump readelf nm

agent=$BUILD/python/agent.so
[ -s "$agent.stripped" ] || skip "sbinject is built without Python targets"
file=$agent.stripped
! readelf -d "$file" | grep -E 'NEEDED|INIT|FINI|SONAME|TEXTREL' || fail "it needs or runs something"
! readelf -V "$file" | grep -q 'Name:' || fail "it asks for versions: $(readelf -V "$file")"
same 'what it exports' "$(nm -D --defined-only "$file" | awk '{ print $3 }')" sb_agent
# The only indirect transfers of the frame evaluation functions are jumps, not calls.
for function in on_frame on_probe; do
	objdump -d --no-show-raw-insn "--disassemble=$function" "$agent" >"$T/code"
	grep -qE "jmp +\*" "$T/code" || fail "$function does not jump on: $(cat "$T/code")"
	! grep -E 'call +\*' "$T/code" || fail "$function calls the next one: a return address stays"
done
# Nothing that it calls may be missing from the oldest C library and interpreter.
for s in $(nm -D --undefined-only "$file" | awk '{ print $2 }'); do
	case $s in
	Py* | _Py_NoneStruct | _Py_FalseStruct | dlsym | __errno_location | getpid) ;;
	mem* | str* | malloc | calloc | realloc | free) ;;
	*) fail "it calls $s" ;;
	esac
done
