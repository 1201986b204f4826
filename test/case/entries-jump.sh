#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Short, looping, calling, rip-relative and flag-reading entries: right, or refused by name.
# quick
# beside others
. "$SRC/test/lib.sh"
. "$SRC/test/shapes.bash"

entries jump 5000
more 'entries hooked' "$taken" $((all / 2))
[[ $refused != *' as_run_'* ]] || fail 'what memcpy() looks like was refused'
# What a jump cannot take is refused, never taken in silence.
[[ $refused == *' as_other_into '* ]] || fail 'as_other_into was hooked by a jump'
[[ $refused != *' as_tight '* ]] || fail 'as_tight was refused: there are no-ops within a short jump'
