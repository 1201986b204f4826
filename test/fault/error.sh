#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every step that changes a target fails once: it is undone.
# limit: 600 s
. "$SRC/test/fault/walk.bash"

walk error
