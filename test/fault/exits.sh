#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Hooks at exits: a thread is in one at nearly every step, with part of the exit behind it. A step of
# hooking or restoring fails, or sbinject is killed in it: the target goes on where it was.
# limit: 300 s
FAULT_PASSAGES=${FAULT_PASSAGES:-2}
. "$SRC/test/fault/walk.bash"

LEAST=3
POINTS='region-header plant-page plant-moved plant-written restore-page restore-text restore-unmap'
walk error exits
walk kill-tracer exits
walk kill-both exits
