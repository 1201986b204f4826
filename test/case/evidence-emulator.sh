#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The evidence by BPF in real kernels, booted in an emulator: 6.1, which has no tracepoints at a
# socket's calls, and 6.12.
# beside others, as idle work
# limit: 600 s
. "$SRC/test/lib.sh"
. "$SRC/test/emulator/boot.bash"
guest "$SRC/test/emulator/evidence.sh" "$V/sweep-shapes" "$V/sockets" "$V/within" "$V/pages" "$SB" "$CTL"
for release in "${releases[@]}"; do
	boot "$release" 240
	grep '^==\|^sockets\|^within\|^pages' "$T/console.txt"
done
