#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# An interpreter that does not come is waited for: the delays of other targets are given meanwhile, and
# without --follow the process is let go with all of its threads its own.
. "$SRC/test/lib.sh"
need_python versions

slowed() { # OPTION...
	sb -p "$pid" py:__main__:step 1us 'libc.so.6:usleep' 1us 'libc.so.6:clock_nanosleep' 1us \
		--for 4s --json "$T/run.json" "$@"
	ended 0 "$*"
	same "lapsed hits of $*" "$(j lease_lapsed_hits)" 0
	let_go "$pid"
}

start held "${python[0]}" "$SRC/test/victim/python/held.py" "$T"
slowed
slowed --no-follow
touch "$T/stop"
wait "$pid" || fail "status $?"
said held '^self-check ok$' || fail 'the program went wrong'
