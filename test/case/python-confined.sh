#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# A seccomp filter that would end an interpreter for loading the agent does not come to see that: it
# is loaded where the filter is suspended, or not at all.
. "$SRC/test/lib.sh"
need_root
need_python

confined() { # WAIT STATUS
	local status=0

	rm -f "$T/stop"
	start confined "${python[0]}" "$SRC/test/victim/python/confined.py" "$1" "$T"
	sb -p "$pid" py:__main__:step 1us --for 2s --json "$T/run.json"
	ended "$2" "$1"
	let_go "$pid"
	touch "$T/stop"
	wait "$pid" || status=$?
	[ $status -eq 0 ] && said confined '^self-check ok$' || fail "$1: it ended with status $status"
}

confined sleep 0
more hits "$(j targets.0.hits)" 0
confined busy 3
told 'confined by seccomp'
