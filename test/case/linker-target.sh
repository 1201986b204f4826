#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# A target that takes in the function by which sbinject hears of libraries: that one is left out and named
# with the true reason, and libraries that are loaded later are hooked all the same.
. "$SRC/test/lib.sh"

case $(ldd "$V/later") in *ld-linux*) ;; *) skip 'another dynamic linker' ;; esac
sb 'ld-linux*:_dl_*' 0 victim-lib.so:lib_fn 0 --json "$T/run.json" -- "$V/later" "$V/victim-lib.so" 100 3
ended 0
cp "$T/sb.out" "$T/later.out"
same 'hits in a library that was loaded later' "$(j targets.1.hits)" "$(calls later lib_fn)"
told '_dl_debug_state: sbinject itself hooks it'
! grep -q 'loaded later are not seen' "$T/sb.err" || fail 'it blames another tool for its own hook'
