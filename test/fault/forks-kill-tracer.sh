#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL of the tracer while the target forks: the command line restores it.
# limit: 600 s
FAULT_PASSAGES=${FAULT_PASSAGES:-3}
. "$SRC/test/fault/walk.bash"

walk kill-tracer forks
