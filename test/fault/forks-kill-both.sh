#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL of both while the target forks: it and its children run on, and recover restores it.
# limit: 600 s
FAULT_PASSAGES=${FAULT_PASSAGES:-3}
. "$SRC/test/fault/walk.bash"

walk kill-both forks
