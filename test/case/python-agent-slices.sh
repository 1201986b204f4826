#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 180 s
# The agent does a command in pieces, and in between modules come and go, the program forks, ends, or
# sbinject asks for something else: counts are exact once it is done, and nothing is left behind.
. "$SRC/test/lib.sh"
. "$SRC/test/python/pythons.sh"

of=versions each_python slices.py
