#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --interval prints the state as it goes.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls"
sb -p "$pid" :victim_work 10us --for 1s --interval 100ms
ended 0
more 'lines that name the target' "$(tr '\r' '\n' <"$T/sb.err" | grep -c victim_work)" 5
finish calls "$pid"
