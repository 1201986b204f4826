#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL of the tracer, or of it and the command line, at every step, where the target would die of
# a call made in its name once no tracer suspends its seccomp filter.
# limit: 600 s
. "$SRC/test/fault/walk.bash"

: "${POINTS:=remote-begin stack-laid call-set call-start call-entered call-left call-unmasked call-restored}"
start confined "$V/confined" memory
sb -p "$pid" :confined_fn 1us --for 50ms
[ "$rc" -ne 4 ] || skip 'filters cannot be suspended here'
kill -TERM "$pid"

walk kill-tracer confined
walk kill-both confined
