#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A command that is started: SIGKILL of tracer, command line or both at every step.
# limit: 600 s
. "$SRC/test/fault/walk.bash"

MOST=2
walk kill-tracer launch
walk kill-client launch
walk kill-both launch
