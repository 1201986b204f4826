#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 400 s
# An agent gets into an interpreter wherever its main thread waits, counts exactly, and gets out:
# no wait is cut short or prolonged, nothing is left behind.
. "$SRC/test/lib.sh"
need_python
PY=$SRC/test/victim/python

in_force() { grep -q 'targets in force' "$T/sb.err"; }
went() { [ -e "$T/w/went" ]; }

# in_and_out PYTHON WAIT
in_and_out() {
	local p=$1 wait=$2 status=0

	rm -rf "$T/w"
	mkdir "$T/w"
	start "$wait" "$p" "$PY/waits.py" "$wait" "$T/w"
	sb_start -v -p "$pid" py:__main__:step 1us --json "$T/run.json"
	wait_for 15 in_force || fail "$p, $wait: the agent did not get in"
	touch "$T/w/go"
	wait_for 15 went || fail "$p, $wait: the program does not go on"
	sb_stop
	ended 0 "$p, $wait"
	same "hits of $p, $wait" "$(j targets.0.hits)" 3000
	let_go "$pid"
	! find "/proc/$pid/fd" -lname '*memfd*' | grep . || fail "$p, $wait: a descriptor is left"
	touch "$T/w/stop"
	wait "$pid" || status=$?
	[ $status -eq 0 ] && said "$wait" '^self-check ok$' ||
		fail "$p, $wait: status $status: $(tail -n 5 "$T/$wait.out" "$T/$wait.err")"
	! grep -q . "$T/$wait.err" || fail "$p, $wait: $(cat "$T/$wait.err")"
}

mapfile -t waits < <("${python[0]}" "$PY/waits.py" names "$T")
[ ${#waits[@]} -gt 10 ] || fail 'no waits'
first=$(versions)
turn=0
for p in "${python[@]}"; do
	# All waits on the oldest version and the newest; each second one on those in between, in turns, and
	# each third one, over their kinds, on another build of a version.
	step=1 from=0
	if ! grep -qxF "$p" <<<"$first"; then
		step=3
	elif [ "$p" != "$(head -n 1 <<<"$first")" ] && [ "$p" != "$(tail -n 1 <<<"$first")" ]; then
		step=$(rounds 2 1)
		from=$((turn++ % step))
	fi
	for ((i = from; i < ${#waits[@]}; i += step)); do
		in_and_out "$p" "${waits[i]}"
	done
done
