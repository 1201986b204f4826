#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others, as live idle work
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

# A root directory without /proc, where a file that has no name cannot be named: refused untouched,
# by list too; a command that goes there runs.
mkdir "$T/root"
unshare -m mount --bind / "$T/root" 2>/dev/null || skip 'no bind mounts here'
there='mount --bind / "$0" && exec chroot "$0" "$@"'
[ ! -e /proc/self ] || unshare -m sh -c "$there" "$T/root" test ! -e /proc/self || skip '/proc is no mount'
start plain unshare -m sh -c "$there" "$T/root" "${python[0]}" "$SRC/test/victim/python/plain.py"
refuses 3 'no /proc, which the agent needs' -p "$pid" py:__main__:step 1us
told 'mount -t proc proc .*/proc$'
sb list -p "$pid" py:__main__:step
ended 3 list
grep -q 'no /proc, which the agent needs' "$T/sb.out" || fail "list: $(cat "$T/sb.out")"
let_go "$pid"
finish plain "$pid"
sb py:__main__:step 1us --json "$T/run.json" -- unshare -m sh -c "$there" "$T/root" \
	"${python[0]}" "$SRC/test/victim/python/plain.py" 50
ended 0 'launched without /proc'
same 'outcome' "$(j targets.0.outcome) $(j targets.0.hits)" 'refused null'
grep -q '^calls step 50$' "$T/sb.out" || fail 'it was disturbed'
