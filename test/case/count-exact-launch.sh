#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# hits == calls in launch mode, a library's constructors and destructors included.
# quick
# beside others
. "$SRC/test/lib.sh"

sb ":victim_work" 0 "victim-lib.so:lib_fn" 0 --json "$T/run.json" \
	-- "$V/calls" -t 4 -n 50000 -l "$V/victim-lib.so"
ended 0
cp "$T/sb.out" "$T/calls.out"
said calls '^self-check ok$' || fail 'the victim is not content'
same victim_work "$(j targets.0.hits)" "$(calls calls victim_work)"
# 7 calls by the constructor, 3 by the destructor
same lib_fn "$(j targets.1.hits)" $(($(calls calls lib_fn) + 10))
same processes "$(j processes.#)" 1
