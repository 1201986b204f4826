#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL of the tracer at every step: the command line restores the target.
# limit: 600 s
. "$SRC/test/fault/walk.bash"

walk kill-tracer
