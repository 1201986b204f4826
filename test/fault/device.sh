#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A step of what brings the device agent in fails, or sbinject is killed in it: the agent's memory is unmapped, by
# whichever side is left, and the program runs on.
# limit: 300 s
FAULT_PASSAGES=${FAULT_PASSAGES:-1}
. "$SRC/test/fault/walk.bash"

LEAST=1
POINTS='mailbox-map device-room async-set async async-end'
walk error device
LEAST=4
walk kill-tracer device
walk kill-both device
