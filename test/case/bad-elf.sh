#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A module that is no ELF file, is truncated or damaged: an error, and the target untouched.
# beside others
. "$SRC/test/lib.sh"

cp "$V/victim-lib.so" "$T/lib.so"
start calls "$V/calls" -l "$T/lib.so"
snapshot "$pid"
size=$(stat -c %s "$T/lib.so")
cp "$T/lib.so" "$T/whole.so"
# The section table is at the file's end: what is mapped is not needed for the damage.
for damage in sections header; do
	case $damage in
	sections) truncate -s $((size - 2000)) "$T/lib.so" ;;
	header) printf 'XXXXXXXXXXXXXXXX' | dd of="$T/lib.so" bs=1 conv=notrunc 2>/dev/null ;;
	esac
	sb -p "$pid" lib.so:no_such_function 1us --for 100ms
	[ "$rc" -ne 0 ] || fail "$damage: status 0"
	[ "$rc" -lt 126 ] || fail "$damage: status $rc"
	[ -s "$T/sb.err" ] || fail "$damage: no word"
	dd if="$T/whole.so" of="$T/lib.so" conv=notrunc 2>/dev/null
	unchanged "$pid"
done
finish calls "$pid"
