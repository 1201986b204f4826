#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL of the tracer, or of both, at each step of what brings an agent into an interpreter and out
# of it: no thread keeps the signal mask of a call of ours, the agent goes, the program runs on.
# limit: 600 s
FAULT_PASSAGES=${FAULT_PASSAGES:-3}
. "$SRC/test/fault/walk.bash"
need_python

POINTS='mailbox-map async-set async async-end call-unmasked call-restored restore-unmap release'
walk kill-tracer python-sleep python-busy
walk kill-both python-sleep python-busy

# The tracer dies before a thread begins its remote call, and a restore ends before that, too. The thread then does
# nothing. The moment lasts microseconds, so the walk is repeated.
POINTS=async-set MOST=1 LEAST=0
for _ in {1..12}; do walk kill-tracer python-busy; done
