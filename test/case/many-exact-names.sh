#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# Thousands of targets by their exact names, as a list of functions has them: each is found and counted,
# without a pass over the symbols for every name, and Ctrl-C is heard while they are looked up.
# limit: 120 s
. "$SRC/test/lib.sh"

n=4000
for ((i = 0; i < n; i++)); do
	echo ".globl f$i; .type f$i,@function; f$i: mov \$$i,%eax; xor %ecx,%ecx; ret; .size f$i,.-f$i; .p2align 4"
done >"$T/lib.s"
echo '.section .note.GNU-stack,"",@progbits' >>"$T/lib.s"
cc -shared -o "$T/libmany.so" "$T/lib.s" || fail 'the library is not built'
cat >"$T/main.c" <<'C'
#include <stdio.h>
#include <unistd.h>
int f0(void), f3777(void);
int main(void) { puts("ready"); fflush(stdout); for (;;) { f0(); f3777(); usleep(1000); } }
C
cc -o "$T/main" "$T/main.c" "$T/libmany.so" -Wl,-rpath,"$T" || fail 'the program is not built'
for ((i = 0; i < n; i++)); do echo "libmany.so:f$i 0"; done >"$T/targets"

start main "$T/main"
snapshot "$pid"
sb --targets "$T/targets" -p "$pid" --for 300ms --json "$T/run.json" -q
ended 0
unchanged "$pid"
same 'targets that were hooked' "$(grep -o '"outcome": *"[a-z_]*"' "$T/run.json" | grep -c 'counted\|never_called')" "$n"
more 'hits of the first' "$(j targets.0.hits)" 0
more 'hits of another' "$(j targets.3777.hits)" 0
same 'hits of one that is not called' "$(j targets.5.hits)" 0

for after in 0.05 0.2 0.4; do
	sb_start --targets "$T/targets" -p "$pid" -q
	sleep $after
	kill -INT "$sb_pid"
	wait_for 10 eval '! kill -0 "$sb_pid" 2>/dev/null' || fail "Ctrl-C after $after s is not heard"
	sb_wait
	unchanged "$pid"
done
kill "$pid"
