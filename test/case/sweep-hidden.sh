#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What runs beside the item and ends long before it is hidden, and what is never called is said so.
# limit: 120 s
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"
[ "$(nproc)" -ge 2 ] || skip 'one processor hides nothing'

start hidden "$V/sweep-shapes" hidden item=2000 slack=1400 rest=1
snapshot "$pid"
finds HIDDEN "$pid" :hid --progress :item --time 6s --threshold 0.2
same 'exit status' "$rc" 0
finds NOT_CALLED "$pid" :never --progress :item --time 3s
same kappa "$(sj targets.0.kappa)" null
unchanged "$pid"
finish hidden "$pid"
