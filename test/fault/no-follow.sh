#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# No process traces meanwhile: SIGKILL of either or both at every step, attach and detach.
# limit: 600 s
FAULT_PASSAGES=${FAULT_PASSAGES:-3}
. "$SRC/test/fault/walk.bash"

walk kill-both no-follow
walk kill-tracer no-follow
