#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Attached and let go again and again, in every way and killed at random, a target that allocates,
# forks and starts threads all the time is what it was: its maps, descriptors and memory.
# limit: 1500 s
# beside others
. "$SRC/test/lib.sh"

seconds=$((${SOAK_SECONDS:-30} * 5 / 10))
cycles=${SOAK_CYCLES:-0} # at least so many, however long it takes

quiet() { # NAME: stands still, and what it has then
	kill -USR1 "$pid"
	turn=$((turn + 1))
	wait_for 30 said churn "^quiet $turn$" || fail 'the victim does not come to rest'
	"$TOOL/procstate" -t "$pid" | grep -v '^thread' >"$T/$1.state"
	awk '/^(RssAnon|RssShmem)/ { print $1, $2 }' "/proc/$pid/status" >"$T/$1.rss"
	awk '/^Threads/ { print $2 }' "/proc/$pid/status" >"$T/$1.threads"
}
busy() {
	kill -USR1 "$pid"
	wait_for 30 said churn "^busy $turn$" || fail 'the victim does not go on'
}
anon() { awk '/RssAnon/ { print $2 }' "$T/$1.rss"; }
let_go_quickly() {
	grep -q '^TracerPid:	0$' "/proc/$pid/status" && ! grep -q sbinject "/proc/$pid/maps"
}

hooks=(:churn_work 300ns libc.so.6:malloc 0 libc.so.6:free 0)

plain() { sb -p "$pid" "${hooks[@]}" --for 20ms --json "$T/run.json"; ended 0 "$cycle"; }
unfollowed() { sb -p "$pid" "${hooks[@]}" --for 20ms --no-follow; ended 0 "$cycle"; }
int3() { sb -p "$pid" :churn_work 5us --mechanism int3 --for 20ms; ended 0 "$cycle"; }
interrupted() {
	sb_start -p "$pid" "${hooks[@]}"
	sleep 0.0$((RANDOM % 90 + 10))
	sb_stop INT
}
stalled() {
	sb_start -p "$pid" "${hooks[@]}" --for 50ms
	sleep 0.1
	kill -STOP "$sb_pid" 2>/dev/null
	sleep 0.05
	kill -CONT "$sb_pid" 2>/dev/null
	sb_wait
}
# The command line's child: it may not have come to the target yet.
tracer_of() { tr -d ' ' <"/proc/$sb_pid/task/$sb_pid/children"; }
gone() { [ ! -e "/proc/$1" ] || grep -q '^State:	Z' "/proc/$1/status"; }
killed_tracer() {
	sb_start -p "$pid" "${hooks[@]}" --for 2s
	sleep 0.$((RANDOM % 200 + 100))
	tracer=$(tracer_of)
	[ -z "$tracer" ] || kill -KILL "$tracer" 2>/dev/null
	sb_wait
}
killed_client() {
	sb_start -p "$pid" "${hooks[@]}" --for 2s
	sleep 0.$((RANDOM % 200 + 100))
	kill -STOP "$sb_pid"
	tracer=$(tracer_of)
	kill -KILL "$sb_pid"
	sb_wait
	[ -z "$tracer" ] || wait_for 20 gone "$tracer" || fail "$cycle: its tracer lives"
}
killed_both() {
	sb_start -p "$pid" "${hooks[@]}" --for 2s
	sleep 0.$((RANDOM % 200 + 100))
	kill -STOP "$sb_pid"
	tracer=$(tracer_of)
	[ -z "$tracer" ] || kill -KILL "$tracer" 2>/dev/null
	kill -KILL "$sb_pid"
	sb_wait
	sb recover -p "$pid"
	ended 0 "recover, $cycle"
}

one_cycle() {
	local way=plain

	case $((RANDOM % 40)) in
	0 | 1 | 2) way=unfollowed ;;
	3 | 4) way=int3 ;;
	5) way=killed_tracer ;;
	6) way=killed_client ;;
	7) way=killed_both ;;
	8 | 9) way=interrupted ;;
	10) way=stalled ;;
	esac
	cycle="cycle $n, $way"
	$way
	kill -0 "$pid" 2>/dev/null || fail "$cycle: the target died"
	wait_for 10 let_go_quickly || fail "$cycle: the target was not let go"
	count[$way]=$((${count[$way]:-0} + 1))
}

declare -A count
turn=0 cycle=first
start churn "$V/churn" "$T/trouble"
plain # its text pages become private once
sleep 0.5
quiet before
busy
end=$(($(date +%s) + seconds))
for ((n = 1; n <= cycles || $(date +%s) < end; n++)); do
	one_cycle
	[ $((n % 20)) -ne 0 ] || wait_for 5 "$TOOL/textcheck" "$pid" ||
		fail "$cycle: the text differs: $("$TOOL/textcheck" "$pid")"
done
quiet after
diff "$T/before.state" "$T/after.state" || fail "maps or descriptors differ after $n cycles"
same threads "$(cat "$T/before.threads")" "$(cat "$T/after.threads")"
less 'kB of anonymous memory more' $(($(anon after) - $(anon before))) 512
busy
let_go "$pid"
finish churn "$pid"
[ ! -s "$T/trouble" ] || fail "$(cat "$T/trouble")"
echo "$((n - 1)) cycles:" "$(for way in "${!count[@]}"; do echo -n " $way ${count[$way]}"; done)"
echo "anonymous memory: $(anon before) kB before, $(anon after) kB after"
