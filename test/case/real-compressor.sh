#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# xz with its inner functions hooked writes the same bytes.
# beside others
. "$SRC/test/lib.sh"

need xz
seq 1 120000 >"$T/data"
xz -c "$T/data" >"$T/plain.xz"
sb 'liblzma.so*:lzma_*' 0 'libc.so.6:read' 2us --json "$T/run.json" -- xz -c "$T/data"
ended 0
cmp "$T/sb.out" "$T/plain.xz" || fail 'the output differs'
more 'calls of liblzma' "$(j targets.0.hits)" 10
more 'sites' "$(j targets.0.sites.#)" 20
sb 'liblzma.so*:*' 0 --json "$T/run.json" -- xz -T 2 -c "$T/data"
ended 0
[ "$(xz -dc <"$T/sb.out" | cksum)" = "$(cksum <"$T/data")" ] || fail 'the output is damaged'
