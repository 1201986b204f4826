#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL of both at every step: the target runs on, and recover restores it.
# limit: 600 s
. "$SRC/test/fault/walk.bash"

walk kill-both
