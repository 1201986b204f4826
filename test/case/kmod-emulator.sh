#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The module in real kernels, booted in an emulator: its whole interface, by echo and cat and by
# sbctl. 6.1 and 6.12 have different interfaces for uprobes. scripts/emulator.sh brings them.
#
# At last the kernel is locked down: it refuses an unsigned module (integrity) and BPF programs that
# read it (confidentiality); doctor says so with the remedy, before anything is tried, and it is true.
# beside others, as idle work
# limit: 900 s
. "$SRC/test/lib.sh"
. "$SRC/test/emulator/boot.bash"
need readelf
guest "$SRC/test/emulator/guest.sh" "$V/calls" "$V/tree" "$CTL" "$SB"
cp "$SRC/test/emulator/more.sh" "$SRC/test/emulator/whose.sh" "$SRC/test/emulator/lockdown.sh" "$root/"
# where in its file the function begins, for another tool than the module
read -r offset address < <(readelf -lW "$V/calls" | awk '/^  LOAD .* R E / { print $2, $3 }')
value=$(readelf -sW "$V/calls" | awk '$8 == "victim_work" { print $2; exit }')
echo $((0x$value - address + offset)) >"$root/victim_work"
readelf -W --dyn-syms "$root/lib/x86_64-linux-gnu/libc.so.6" |
	awk '$4 == "FUNC" && $5 == "GLOBAL" && $7 != "UND" { sub(/@.*/, "", $8); print $8 }' |
	sort -u | grep '^get\|^set' >"$root/functions"

for release in "${releases[@]}"; do
	module "$release"
	boot "$release" 600
	for level in none integrity confidentiality; do
		grep -q "== $release, lockdown=$level" "$T/console.txt" || fail "$release was not at $level"
	done
done
