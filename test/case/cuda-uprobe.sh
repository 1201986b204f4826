#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The preset cuda by uprobes: all versions of a function are one row, hits are the driver's own, and what
# is not measured is unknown.
# beside others
. "$SRC/test/lib.sh"
need_uprobe
export XDG_CONFIG_HOME="$T/none"

cp "$V/libcuda.so.1" "$T/libcuda.so.1" # a uprobe is in every process that maps the file
log() { sed -n "s/^calls $1 //p" "$T/cuda.out"; }

start cuda "$V/cuda" -t 4 -n 50 -g "$T/gate" "$T/libcuda.so.1"
attach_told "$pid" --backend uprobe cuda 0
touch "$T/gate"
sb_wait
ended 0
said cuda '^self-check ok$' || fail "the program: $(cat "$T/cuda.out")"
same backend "$(j backend)" uprobe
same launches "$(j cuda.launches)" $(($(log cuLaunchKernel) + $(log cuLaunchKernelEx)))
same 'versions of a function' "$(j targets.0.sites.#)" 2
same 'hits of a function' "$(j targets.0.hits)" "$(log cuLaunchKernel)"
same syncs "$(j cuda.syncs)" $(($(log cuStreamSynchronize) + $(log cuCtxSynchronize)))
same 'time of waits' "$(j cuda.sync_ns)" null
