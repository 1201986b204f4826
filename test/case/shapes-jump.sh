#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Recursion, tail calls, longjmp, backtraces, every kind of argument, a small signal stack.
# beside others
. "$SRC/test/lib.sh"
. "$SRC/test/shapes.bash"

shapes jump 20000
