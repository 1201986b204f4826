#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Under int3 a step that fails is undone, and the command line may be killed.
# limit: 600 s
FAULT_PASSAGES=${FAULT_PASSAGES:-3}
. "$SRC/test/fault/walk.bash"

walk error int3
walk kill-client int3
