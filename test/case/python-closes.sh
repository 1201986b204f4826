#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 180 s
# A program that closes all descriptors that it does not know, all the time, can be attached to as any
# other, with Python targets and native ones; its own files keep what is theirs, nothing is left open.
. "$SRC/test/lib.sh"
need_python

for p in "${python[@]}"; do
	start closes "$p" "$SRC/test/victim/python/closes.py" "$T/file"
	for n in 1 2 3 4 5 6; do
		sb -p "$pid" py:__main__:step 0 libc.so.6:write 0 --for 200ms --json "$T/run.json"
		ended 0 "$p, attach $n"
		more "$p, attach $n: calls" "$(j targets.0.hits)" 20
		more "$p, attach $n: native calls" "$(j targets.1.hits)" 20
		let_go "$pid"
		! readlink /proc/"$pid"/fd/* | grep memfd:sbinject || fail "$p, attach $n: a file is left open"
	done
	finish closes "$pid"
done
