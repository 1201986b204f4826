#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# Other tools want the target: gdb and strace, beside an untraced session and after any; they see
# what they would have seen, and leave a target that can still be let go.
# limit: 90 s
. "$SRC/test/lib.sh"

start calls "$V/calls" -t 2 -r
target=$pid
snapshot "$target" -t

look() { # WHEN: by each tool there is
	if command -v gdb >/dev/null; then
		timeout 40 gdb -nx -batch -p "$target" -ex 'thread apply all bt 8' -ex detach \
			>"$T/gdb.out" 2>&1 </dev/null || fail "gdb, $1: $(tail -n 5 "$T/gdb.out")"
		grep -q 'victim_sleep_ns\|one_call\|work (\|victim_work' "$T/gdb.out" ||
			fail "gdb, $1, sees no frame of its own: $(tail -n 20 "$T/gdb.out")"
	fi
	if command -v strace >/dev/null; then
		timeout -s INT 1 strace -f -o "$T/strace.out" -p "$target" >"$T/strace.err" 2>&1
		grep -q 'nanosleep' "$T/strace.out" || fail "strace, $1: $(cat "$T/strace.err")"
	fi
	wait_for 5 untraced "$target" || fail "still traced, $1"
}

command -v gdb >/dev/null || command -v strace >/dev/null || skip 'neither gdb nor strace'
attach "$target" :victim_work 20us --no-follow
await_untraced "$target"
look 'beside an untraced session'
hooked "$target" || fail 'the hooks are gone'
sb_stop
ended 0
unchanged "$target" -t
more hits "$(j targets.0.hits)" 1000
look 'after it'

attach "$target" :victim_work 20us
refused=0
if command -v strace >/dev/null; then
	timeout -s INT 5 strace -p "$target" >"$T/strace.err" 2>&1 || refused=$?
	[ $refused -ne 0 ] || fail 'strace was let in beside a session that follows'
fi
sb_stop
ended 0
unchanged "$target" -t
look 'after a session that followed'

# Another tracer stands in the way of the detach: it is waited for; or said what stays.
attach "$target" :victim_work 20us --no-follow
await_untraced "$target"
start tracer "$V/odd" tracer "$target"
other=$pid
kill -INT "$sb_pid"
sleep 1
finish tracer "$other"
sb_wait
ended 0 'after the other tracer has ended'
unchanged "$target" -t
attach "$target" :victim_work 20us --no-follow
await_untraced "$target"
start tracer "$V/odd" tracer "$target"
other=$pid
sb_stop
ended 1 'beside a tracer that stays'
told 'its hooks stay'
told "recover -p $target"
sleep 0.7
more 'calls a second with hooks that do nothing' "$(rate calls)" 100000
finish tracer "$other"
sb recover -p "$target"
ended 0
unchanged "$target" -t
finish calls "$target"
