#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where Yama lets only ancestors trace (ptrace_scope 1) a launched command is open to its tracer and
# to no other process of its user, for as long as it lives. Booted in an emulator: scripts/emulator.sh
# brings the kernels.
# beside others, as idle work
# limit: 600 s
. "$SRC/test/lib.sh"
. "$SRC/test/emulator/boot.bash"
need setpriv

guest "$SRC/test/emulator/yama.sh" "$V/calls" "$SB" "$TOOL/hold" "$TOOL/textcheck" "$(command -v setpriv)"
chmod -R go+rX "$root"
boot "${releases[0]}" 500
grep -q 'ptrace_scope=[0-9]' "$T/console.txt" || fail 'the kernel has no Yama'
