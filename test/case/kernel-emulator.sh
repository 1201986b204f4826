#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Functions of a kernel that permits it, and of a module, are counted, timed and read as the program's own
# books have it; nothing of that outlives sbinject.
# beside others, as idle work
# limit: 600 s
. "$SRC/test/lib.sh"
. "$SRC/test/emulator/boot.bash"
guest "$SRC/test/emulator/kernel.sh" "$V/incalls" "$SB"
mkdir -p "$root/share/sbinject"
cp -R "$SRC/share/sbinject/presets" "$root/share/sbinject/" # beside the program in /bin
release=${releases[-1]}
module "$release" "$SRC/test/emulator/nvidia" nvidia
boot "$release" 500
grep '^==' "$T/console.txt"
