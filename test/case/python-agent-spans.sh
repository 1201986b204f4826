#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside idle work
# limit: 180 s
# Calls last as long as the program itself measures, whichever way they end; timing them costs their
# time nothing, and nothing of it stays.
. "$SRC/test/lib.sh"
. "$SRC/test/python/pythons.sh"

each_python spans.py
