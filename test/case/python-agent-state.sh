#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 180 s
# The agent comes, changes its mind and goes, alone and beside other tools, and leaves nothing behind.
. "$SRC/test/lib.sh"
. "$SRC/test/python/pythons.sh"

each_python state.py
each_python beside.py
