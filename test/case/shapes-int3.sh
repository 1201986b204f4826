#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Recursion, tail calls, longjmp and the rest with the one-byte hook.
# beside others
. "$SRC/test/lib.sh"
. "$SRC/test/shapes.bash"

shapes int3 200
