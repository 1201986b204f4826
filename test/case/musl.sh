#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Another C library: programs of musl's, linked to it and static, attached to, launched and let go;
# a library that one loads later is hooked when it appears.
# limit: 180 s
# quick
# beside others
. "$SRC/test/lib.sh"

M=$V/musl
[ -x "$M/calls" ] || skip 'no musl-gcc'

for victim in calls calls-static; do
	for how in '' --no-follow; do
		start $victim "$M/$victim" -t 2
		snapshot "$pid" -t
		# shellcheck disable=SC2086 # no way, no word
		attach "$pid" :victim_work 2us :victim_other 0 $how
		sleep 0.3
		sb_stop
		ended 0 "$victim $how"
		unchanged "$pid" -t
		finish $victim "$pid"
		same "outcome of $victim $how" "$(j targets.0.outcome)" delayed
		more "hits of $victim $how" "$(j targets.0.hits)" 100
	done
	sb :victim_work 1us :victim_other 0 --json "$T/run.json" -- "$M/$victim" -t 2 -n 5000
	ended 0 "$victim, launched"
	cp "$T/sb.out" "$T/launched.out"
	said launched '^self-check ok$' || fail "$victim, launched: not content"
	same "hits of $victim, launched" "$(j targets.0.hits)" "$(calls launched victim_work)"
	same "delayed of $victim, launched" "$(j targets.0.delayed)" "$(calls launched victim_work)"
done

# The C library itself: its file is the dynamic linker, too.
start calls "$M/calls" -t 2
sb -p "$pid" libc.so:clock_gettime 1us --for 200ms --json "$T/run.json"
ended 0
let_go "$pid"
finish calls "$pid"

start later "$M/later" "$M/victim-lib.so" 500 1 "$T/gate"
sb_start -p "$pid" victim-lib.so:lib_fn 1us --json "$T/run.json"
wait_for 10 hooked "$pid" || fail 'nothing is hooked: the loader should be'
sleep 0.3
touch "$T/gate"
wait_for 20 said later '^called$' || fail 'the library was not loaded'
sb_stop
ended 0
let_go "$pid"
finish later "$pid"
# Its constructor's calls are among them; its destructor's are not: here that runs at the exit.
same 'hits in the library' "$(j targets.0.hits)" $(($(calls later lib_fn) - 3))
