#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A target that locks its memory and is near its limit: a region is mapped in two steps there. Whatever
# fails or dies in between, nothing stays mapped.
# limit: 600 s
. "$SRC/test/fault/walk.bash"

need_root
need setpriv prlimit
chmod 755 "$T"
: "${POINTS:=remote-begin call-entered call-left region-header restore-unmap setup-map}"
MOST=16
walk error locked
walk kill-both locked
