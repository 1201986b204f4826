#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 400 s
# Servers, pools, executors and queues of the standard library under load: attached to and let go in
# the midst of it, and launched, each call is counted once, in whatever process and thread it is made.
. "$SRC/test/lib.sh"
need pgrep
need_python versions
VICTIM=$SRC/test/victim/python/real.py

went() { [ -e "$T/w/went" ]; }
two() { [ "$(pgrep -cP "$pid")" -ge 2 ]; }
in_force() { # PID...
	local p
	for p; do
		grep -q "process $p: Python targets in force" "$T/sb.err" || return
	done
}

# attached PYTHON KIND
attached() {
	local status=0 workers=''

	rm -rf "$T/w"
	mkdir "$T/w"
	start real "$1" -W ignore "$VICTIM" "$T/w" "$2"
	case $2 in
	pool | futures) # two live long, others come and go
		wait_for 10 two || fail "$*: no workers"
		workers=$(pgrep -P "$pid" | sort -n | head -n 2)
		;;
	esac
	attach_told "$pid" -v py:__main__:step 20us
	# shellcheck disable=SC2086 # words
	wait_for 15 in_force "$pid" $workers || fail "$*: the agent did not get in"
	touch "$T/w/go"
	wait_for 40 went || fail "$*: the program does not go on: $(cat "$T/real.err")"
	sb_stop
	ended 0 "$*"
	let_go "$pid"
	same "hits of $*" "$(j targets.0.hits) $(j targets.0.delayed)" "$(calls real step) $(calls real step)"
	touch "$T/w/stop"
	wait "$pid" || status=$?
	[ $status -eq 0 ] && said real '^self-check ok$' ||
		fail "$*: status $status: $(tail -n 5 "$T/real.out" "$T/real.err")"
	[ ! -s "$T/real.err" ] || fail "$*: $(cat "$T/real.err")"
}

for p in "${python[@]}"; do
	sb py:__main__:step 20us --json "$T/run.json" -- "$p" -W ignore "$VICTIM" -
	ended 0 "$p"
	grep -q '^self-check ok$' "$T/sb.out" || fail "$p: the program is not content"
	same "hits of $p" "$(j targets.0.hits)" "$(sed -n 's/^calls step //p' "$T/sb.out")"
	for kind in http asyncio pool futures; do
		attached "$p" $kind
	done
done
