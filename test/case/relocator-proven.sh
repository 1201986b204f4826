#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others, as idle work
# Displaced instructions do what they did: those of every function of real libraries are run in
# both places and read in both; a relocator that is wrong in one bit is found out.
# limit: 120 s
. "$SRC/test/lib.sh"

prove=$BUILD/test/prove/prove
[ -x "$prove" ] || skip "$prove is not built"

# proven ARGS...: every window is, and most of them by being run
proven() {
	rc=0
	"$prove" "$@" >"$T/prove.out" 2>&1 || rc=$?
	[ $rc -ne 77 ] || return 77
	[ $rc -eq 0 ] || fail "prove $*: $(grep -E 'WRONG|prove:' "$T/prove.out")"
	grep -E '^/|functions' "$T/prove.out"
	awk '/functions/ { if ($(NF-5) * 10 < $(NF-8) * 9) exit 1 }' "$T/prove.out" ||
		fail "prove $*: fewer than nine in ten were run"
}

# found_out ARGS...: of what was damaged in one bit, most is called wrong
found_out() {
	"$prove" "$@" libc.so.6 >"$T/prove.out" 2>&1
	awk '/functions/ { seen = 1; if ($(NF-1) * 10 < $(NF-8) * 7) exit 1 } END { exit !seen }' \
		"$T/prove.out" || fail "prove $*: not found out: $(cat "$T/prove.out")"
}

proven -a libc.so.6 || skip 'no libc.so.6 in the usual places'
proven -a -m libc.so.6
proven -a -i libc.so.6
proven -a 'libcrypto.so.?' 'libstdc++.so.6' 'libpython3*.so.1.0'
proven -a -e 20 largest
for bit in 1 11 26 50; do
	found_out -w run -d $bit
	found_out -w read -d $bit
done
