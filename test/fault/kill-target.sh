#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The target is killed at every step: sbinject ends, without hanging.
# limit: 600 s
. "$SRC/test/fault/walk.bash"

MOST=4
walk kill-target
