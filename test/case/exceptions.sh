#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# C++ exceptions through hooked functions, named as C++ does.
# quick
# beside others
. "$SRC/test/lib.sh"

[ -x "$V/throw" ] || skip 'no C++ compiler'
sb ':victim::passer(int)' 0 ':victim::thrower' 0 ':victim::templated*' 1us --json "$T/run.json" \
	-- "$V/throw" 20000
ended 0
cp "$T/sb.out" "$T/throw.out"
said throw '^self-check ok$' || fail 'the victim is not content'
same passer "$(j targets.0.hits)" "$(calls throw passer)"
same thrower "$(j targets.1.hits)" "$(calls throw thrower)"
same templated "$(j targets.2.delayed)" "$(calls throw templated)"
