#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 240 s
# A fork has its parent's agent at work in it. Where forks are not followed, or not seen, the agent
# goes before the page that it counts in: no child dies of it.
. "$SRC/test/lib.sh"
need_python versions

in_force() { grep -q 'targets in force' "$T/sb.err"; }
more_forked() { [ "$(grep -c '^forked' "$T/forks.out")" -gt "$1" ]; }

# go PYTHON OPTION...
go() {
	local p=$1 status=0

	rm -rf "$T/w"
	mkdir "$T/w"
	start forks "$p" "$SRC/test/victim/python/forks.py" "$T/w"
	sb_start -v -p "$pid" py:__main__:step 1us --json "$T/run.json" "${@:2}"
	wait_for 15 in_force || fail "$*: the agent did not get in"
	wait_for 30 more_forked $(($(grep -c '^forked' "$T/forks.out") + 5)) || fail "$*: no children come"
	sb_stop
	ended 0 "$*"
	more "hits of $*" "$(j targets.0.hits)" 0
	wait_for 30 more_forked $(($(grep -c '^forked' "$T/forks.out") + 2)) || fail "$*: no children come after it"
	let_go "$pid"
	touch "$T/w/stop"
	wait "$pid" || status=$?
	[ $status -eq 0 ] && said forks '^self-check ok$' ||
		fail "$*: status $status: $(tail -n 5 "$T/forks.out" "$T/forks.err")"
}

for p in "${python[@]}"; do
	go "$p" --no-children
	go "$p" --no-follow
	go "$p"
done
