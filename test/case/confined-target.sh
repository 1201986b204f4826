#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A target under seccomp is hooked or refused, and lives either way.
. "$SRC/test/lib.sh"

start confined "$V/confined"
snapshot "$pid"
sb -p "$pid" :confined_fn 1us --for 300ms --json "$T/run.json"
if [ "$rc" -eq 0 ]; then
	more hits "$(j targets.0.hits)" 100
else
	told 'seccomp'
fi
unchanged "$pid"
finish confined "$pid"
