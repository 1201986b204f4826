#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# The programs are built so that a mistake of theirs is hard to use; what is put into targets is not
# changed by that.
. "$SRC/test/lib.sh"
need readelf objdump

[ -e "$BUILD/inject/entry.o" ] || skip 'no objects of the build are here'
for program in "$SB" "$CTL"; do
	readelf --dyn-syms -W "$program" >"$T/symbols"
	! grep -q __asan "$T/symbols" || skip 'built with sanitizers, which have checks of their own'
	readelf -hlWd "$program" >"$T/about"
	has() { grep -qE "$1" "$T/about" || fail "${program##*/}: $2"; }
	has 'Type: +DYN' 'is not position-independent'
	has 'FLAGS_1.*PIE' 'is not position-independent'
	has 'GNU_RELRO' 'relocated data stays writable'
	has 'FLAGS_1.*NOW' 'functions are bound late'
	has 'GNU_STACK.* RW +0x' 'the stack can be executed'
	! grep -E '^ +(LOAD|GNU_[A-Z]+) .* (RWE|R?WE) ' "$T/about" || fail "$program: memory to write and execute"
	grep -q __stack_chk_fail "$T/symbols" || fail "$program: no stack protector"
	grep -qE '__[a-z]+_chk@' "$T/symbols" || fail "$program: no _FORTIFY_SOURCE"
done
if [ "$(uname -m)" = x86_64 ]; then
	objdump -d "$SB" --disassemble=main | grep -q endbr64 || fail 'no -fcf-protection'
	# A process marked for a shadow stack would be ended by the hooks that it measures in itself.
	! readelf -nW "$SB" | grep -E 'x86 feature: .*SHSTK' || fail 'marked for a shadow stack'
fi

# What runs in targets: entered by a jump or a call of ours, without the libc that a check would call.
for code in "$BUILD"/inject/entry.o "$BUILD"/inject/arch/*/stub-code.o; do
	objdump -d -j sb_entry -j .text -j .rodata "$code" >"$T/code" 2>/dev/null
	! grep -E 'endbr|notrack' "$T/code" || fail "$code has landing pads"
	! readelf -sW "$code" | grep -E '__stack_chk|_chk$' || fail "$code has checks"
done
if [ -s "$BUILD/python/agent.so.stripped" ]; then
	! readelf --dyn-syms -W "$BUILD/python/agent.so.stripped" | grep -E '__stack_chk|_chk' ||
		fail 'the agent has checks'
fi
exit 0
