#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# Code on huge pages and on anonymous memory, in a memfd, in a library that was upgraded; without
# address randomisation; restartable sequences at work.
# limit: 90 s
. "$SRC/test/lib.sh"

# anonymous_text PID: a sum over its executable memory without a file
anonymous_text() {
	local range from to
	grep -E '^[^ ]+ r-xp [0-9a-f]+ 00:00 0 *$' "/proc/$1/maps" | while read -r range _; do
		from=$((16#${range%-*} / 4096)) to=$((16#${range#*-} / 4096))
		dd if="/proc/$1/mem" bs=4096 skip=$from count=$((to - from)) status=none | cksum
	done
}

for mode in huge thp memfd rseq; do
	status=0
	"$V/texts" "$mode" </dev/null >"$T/try.out" 2>&1 &
	sleep 0.2
	kill -TERM $! && wait $! || status=$?
	[ $status -ne 77 ] || continue # not on this machine
	start "$mode" "$V/texts" "$mode"
	snapshot "$pid" -t
	before=$(anonymous_text "$pid")
	[ "$mode" != huge ] || [ -n "$before" ] || fail 'no text without a file'
	for how in '' --no-follow '' '' ''; do
		# shellcheck disable=SC2086 # no mode, no word
		sb -p "$pid" :texts_fn 2us --for 100ms $how --json "$T/run.json"
		ended 0 "$mode $how"
		more "hits of $mode" "$(j targets.0.hits)" 100
		mean=$(j targets.0.given_ns.mean)
		more "mean given, $mode" "${mean%.*}" 1500
	done
	same "text of $mode" "$(anonymous_text "$pid")" "$before"
	unchanged "$pid" -t
	finish "$mode" "$pid"
done

# A library that is upgraded, and then deleted, while it is in use.
need_root # /proc/PID/map_files
cp "$V/victim-lib.so" "$T/lib.so"
start calls "$V/calls" -l "$T/lib.so"
snapshot "$pid"
cp "$V/throw" "$T/new.so" 2>/dev/null || cp "$V/calls" "$T/new.so"
mv "$T/new.so" "$T/lib.so"
sb -p "$pid" lib.so:lib_fn 1us --for 150ms --json "$T/run.json"
ended 0
more 'hits in an upgraded library' "$(j targets.0.hits)" 100
rm "$T/lib.so"
sb -p "$pid" lib.so:lib_fn 1us --for 150ms --json "$T/run.json"
ended 0
more 'hits in a deleted library' "$(j targets.0.hits)" 100
"$TOOL/textcheck" "$pid" || fail 'the text differs'
finish calls "$pid"

need setarch
setarch -R true 2>/dev/null || skip 'the rest: setarch -R is not permitted'
start calls setarch -R "$V/calls" -t 2
grep -q '^55555555' "/proc/$pid/maps" || fail 'its addresses are random'
snapshot "$pid" -t
for i in 1 2 3 4 5; do
	sb -p "$pid" :victim_work 1us libc.so.6:getpid 0 --for 80ms --json "$T/run.json"
	ended 0 "without ASLR, $i"
	more 'hits without ASLR' "$(j targets.0.hits)" 100
done
unchanged "$pid" -t
finish calls "$pid"
