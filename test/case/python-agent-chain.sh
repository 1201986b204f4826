#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# On 3.10 and 3.11 another frame evaluation function, before or after the agent's, goes on working.
# beside others
. "$SRC/test/lib.sh"
. "$SRC/test/python/pythons.sh"
need cc

cc -shared -fPIC -O2 -o "$T/chain.so" "$SRC/test/python/chain.c" || fail "chain.c"
export CHAIN=$T/chain.so
each_python chain.py
