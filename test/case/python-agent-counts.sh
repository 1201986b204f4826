#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# limit: 180 s
# What the agent counts is what Python programs count themselves, on every CPython here.
# quick
# beside others
. "$SRC/test/lib.sh"
. "$SRC/test/python/pythons.sh"

each_python counts.py
