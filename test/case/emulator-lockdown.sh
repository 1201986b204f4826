#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A kernel that is locked down refuses an unsigned module (integrity) and BPF programs that read it
# (confidentiality): doctor says so with the remedy, before anything is tried, and it is true.
# beside others, as idle work
# limit: 900 s
. "$SRC/test/lib.sh"
. "$SRC/test/emulator/boot.bash"

guest "$SRC/test/emulator/lockdown.sh" "$V/calls" "$SB"
for release in "${releases[@]}"; do
	module "$release"
	boot "$release" 400
	for level in none integrity confidentiality; do
		grep -q "== $release, lockdown=$level" "$T/console.txt" || fail "$release was not at $level"
	done
done
