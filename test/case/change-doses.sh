#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The delay is changed up and down while hits are in flight: after each change calls take what is asked
# then, by the program's own clock, and the injected time is hits times delay.
. "$SRC/test/lib.sh"

ctl() { "$CTL" "$@" >"$T/ctl.out" 2>"$T/ctl.err" || fail "sbctl $*: $(cat "$T/ctl.err")"; }

# take: the median of one call, tenths of a nanosecond, in $dose; its 5th percentile in $low
take() {
	local lines

	lines=$(grep -c '^dose' "$T/doses.out")
	echo take >"$T/fifo"
	wait_for 10 took "$lines" || fail 'the victim took no samples'
	read -r _ dose low _ <<<"$(grep '^dose' "$T/doses.out" | tail -n 1)"
}
took() { [ "$(grep -c '^dose' "$T/doses.out")" -gt "$1" ]; }

changed() { # THREADS
	local ns

	rm -f "$T/fifo"
	mkfifo "$T/fifo"
	start doses "$V/doses" -t "$1" -f "$T/fifo"
	snapshot "$pid"
	take
	base=$dose
	attach "$pid" :victim_work 1us
	await_session
	for ns in 50000 5000 200000 50000 1000 50000 1000; do
		ctl update :victim_work $ns
		take
		less "$1 threads: a call at $ns ns" $((dose - base)) $((ns * 103 / 10 + 3000))
		more "$1 threads: a call at $ns ns" $((dose - base)) $((ns * 97 / 10 - 1000))
		more "$1 threads: the 5th percentile at $ns ns" $((low - base)) $((ns * 95 / 10 - 1000))
	done
	sb_stop
	ended 0
	unchanged "$pid"
	finish doses "$pid"
}

changed 1
changed 8
