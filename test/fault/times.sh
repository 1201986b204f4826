#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Functions that are timed: a thread is between an entry and its exits at nearly every step. A step of
# hooking or restoring fails, or sbinject is killed in it: the target goes on where it was.
# limit: 400 s
FAULT_PASSAGES=${FAULT_PASSAGES:-2}
. "$SRC/test/fault/walk.bash"

LEAST=3
POINTS='region-header plant-page plant-moved plant-written restore-page restore-text restore-unmap'
walk error times
walk kill-tracer times
walk kill-both times
walk error tiny
walk kill-tracer tiny
walk kill-both tiny
