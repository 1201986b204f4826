#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# limit: 240 s
# No piece of a command keeps a program of 1200 modules and a quarter of a million objects waiting for
# 5 ms: the first attach, a later one, a target that comes or goes, one whose name nothing has, a
# detach, also from every function at once, with objects frozen and not; the counts are exact all the
# same.
# beside idle work
. "$SRC/test/lib.sh"
. "$SRC/test/python/pythons.sh"

of=versions each_python holds.py
