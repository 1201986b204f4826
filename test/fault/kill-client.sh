#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL of the command line at every step: the tracer lets the target go.
# limit: 600 s
. "$SRC/test/fault/walk.bash"

walk kill-client
