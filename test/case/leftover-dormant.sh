#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 180 s
# An agent in an interpreter that runs no Python code cannot be taken out. After SIGKILL of both, and
# after a detach, sbinject names the reason and `recover` fails. Such an agent does not prevent an attach,
# and the next attach or `recover` takes it out once the interpreter runs.
. "$SRC/test/lib.sh"
need_python

p=${python[-1]}
state() { grep -c "$1" "$T/dormant.out"; }
waits() { [ "$(state waits)" -eq "$1" ]; }
goes_on() { [ "$(state 'goes on')" -eq "$1" ]; }
step=0

# The program waits in C from here on; another thread has the lock. $holder
block() {
	step=$((step + 1))
	kill -USR1 "$pid"
	wait_for 10 waits $step || fail 'it does not wait'
	sleep 0.1
}
hold() {
	rm -f "$T/holder.out"
	"$p" -c 'import fcntl, sys, time
f = open(sys.argv[1], "r+")
fcntl.lockf(f, fcntl.LOCK_EX)
print("has it", flush=True)
time.sleep(170)' "$T/lock" >"$T/holder.out" &
	holder=$!
	pids+=("$holder")
	wait_for 10 grep -q 'has it' "$T/holder.out" || fail 'no thread has the lock'
}
unblock() {
	kill "$holder"
	wait_for 10 goes_on $step || fail 'it does not go on'
}
attach_python() {
	attach_told "$pid" py:__main__:step 0
}
# What is there runs on beside it, and nothing of this session stays.
native_works() {
	grep memfd:sbinject "/proc/$pid/maps" >"$T/maps.before"
	sb -p "$pid" 'libc.so.6:getpid' 0 --for 200ms
	ended 0 "$1: a native attach"
	grep memfd:sbinject "/proc/$pid/maps" >"$T/maps.after"
	diff "$T/maps.before" "$T/maps.after" || fail "$1: a native attach left something"
}
python_works() {
	sb -p "$pid" py:__main__:step 0 --for 300ms --json "$T/run.json"
	ended 0 "$1: attach"
	more "$1: calls" "$(j targets.0.hits)" 2 # of 300, on a machine that may be overloaded
	let_go "$pid"
}

: >"$T/lock"
start dormant "$p" "$SRC/test/victim/python/dormant.py" "$T/lock"
python_works 'at first'

# SIGKILL of both.
attach_python
hold
block
tracer=$(awk '/^TracerPid/ { print $2 }' "/proc/$pid/status")
kill -STOP "$sb_pid"
kill -KILL "$tracer" "$sb_pid"
wait "$sb_pid" 2>/dev/null
refuses 1 "was left hooked by an sbinject that was killed" -p "$pid" libc.so.6:getpid 0
begun=$EPOCHSECONDS
sb recover -p "$pid"
ended 1 'recover of what cannot go'
less 'it waited' $((EPOCHSECONDS - begun)) 30
told 'so an agent stays in it'
told 'a call is queued for its main thread, which runs native code or sleeps in it'
! grep -qi 'signal handler' "$T/sb.err" || fail 'a signal handler was there'
native_works 'a dormant agent'
sb -p "$pid" py:__main__:step 0 --require-hits --for 100ms
ended 125 'a Python attach beside a dormant agent'
told 'an agent of an earlier sbinject is still in its interpreter'
told 'a call is queued for its main thread'
unblock
python_works 'adopted'
sb recover -p "$pid"
ended 0
grep -qi 'nothing to restore' "$T/sb.out" || fail 'something was left'

# A detach.
attach_python
hold
block
# shellcheck disable=SC2119 # by SIGINT
sb_stop
ended 1 'a detach that leaves the agent'
told 'no safe point (a call is queued for its main thread.*and stays, idle'
[ "$(grep -c 'process .*:' "$T/sb.err")" -le 2 ] || fail 'it is said more than once'
native_works 'an idle agent'
unblock
sb recover -p "$pid"
ended 0 'recover once it runs'
let_go "$pid"
python_works 'in the end'
finish dormant "$pid"
