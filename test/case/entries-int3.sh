#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The same entries with the one-byte hook, which takes nearly all of them.
# quick
# beside others
. "$SRC/test/lib.sh"
. "$SRC/test/shapes.bash"

entries int3 60
more 'entries hooked' "$taken" $((all * 3 / 4))
