#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# COMMAND not found, not executable, a directory, a damaged or foreign ELF file.
# beside others
. "$SRC/test/lib.sh"

refuses 127 'nowhere' :main 1us -- "$T/nowhere"
refuses 127 'no-such-command-anywhere' :main 1us -- no-such-command-anywhere
echo 'not a program' >"$T/plain"
refuses 126 'plain' :main 1us -- "$T/plain"
refuses 126 '' :main 1us -- "$T"
head -c 300 "$V/calls" >"$T/truncated"
chmod 755 "$T/truncated"
sb :main 1us -- "$T/truncated"
[ "$rc" -ne 0 ] || fail 'a truncated program ran' # execvp() may give it to a shell
# a 32-bit ELF header
printf '\177ELF\001\001\001\000\000\000\000\000\000\000\000\000\002\000\003\000\001\000\000\000' >"$T/elf32"
head -c 200 /dev/zero >>"$T/elf32"
chmod 755 "$T/elf32"
sb :main 1us -- "$T/elf32"
[ "$rc" -ne 0 ] || fail 'a 32-bit program ran'
sb :main 1us --
[ "$rc" -eq 2 ] || [ "$rc" -eq 125 ] || fail "no command: status $rc"
