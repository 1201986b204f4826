#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A cache whose entries live for half a second: slower look-ups find fewer of them, but only after that
# time, which is longer than a block of windows. kappa is what a delay adds in the end, not at once (1).
# limit: 150 s
# beside idle work
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"

start cache "$V/sweep-shapes" cache
snapshot "$pid"
measures "$(truth cache crit)" 'CRITICAL INCONCLUSIVE' "$pid" :crit --progress :item --time 20s
unchanged "$pid"
finish cache "$pid"
