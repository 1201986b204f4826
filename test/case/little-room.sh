#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A command whose address space is too small for the control page is not hooked, and the true reason is
# said of each target: not that its function is missing.
# beside others
# quick
. "$SRC/test/lib.sh"

rc=0
(ulimit -v 100000 && exec timeout 20 "$SB" :victim_work 1us --json "$T/run.json" -- "$V/calls" -n 10) \
	>"$T/sb.out" 2>"$T/sb.err" </dev/null || rc=$?
ended 0
same 'calls' "$(calls sb victim_work)" 10
same 'outcome' "$(j targets.0.outcome)" refused
told '^refused: :victim_work: cannot map the control page .*ulimit -v'
! grep -q 'no such function' "$T/sb.err" || fail 'it says that the function is missing'
