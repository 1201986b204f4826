#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL of the tracer, or of both, at each step of what brings an agent into an interpreter and out
# of it: no thread keeps the signal mask of a call of ours, the agent goes, the program runs on.
# limit: 600 s
. "$SRC/test/fault/walk.bash"
need_python

POINTS='room-map lend-set lend recall call-unmasked call-restored restore-unmap release'
walk kill-tracer python-sleep python-busy
walk kill-both python-sleep python-busy

# A lent thread that has not begun when the tracer dies, nor when somebody comes to restore: it does
# nothing any more. That is a matter of microseconds, so it is tried a few times.
POINTS=lend-set MOST=1 LEAST=0
for _ in {1..12}; do walk kill-tracer python-busy; done
