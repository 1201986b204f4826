#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Recursion, tail calls, longjmp, backtraces, every kind of argument, a small signal stack.
. "$SRC/test/lib.sh"
. "$SRC/test/shapes.bash"

shapes jump 20000
