#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A module that nothing matches is not waited for in silence: at once come near names, what was
# probably meant, or the file that is awaited. A missing -- is guessed.
# beside others
# quick
. "$SRC/test/lib.sh"

start calls "$V/calls" -p 2000
target=$pid

# waits PATTERN TARGET: said at once, before the session has ended, and again in the summary
waits() {
	rm -f "$T/told"
	sb_start -p "$target" "$2" 1us --status-fd 9 9>"$T/told"
	wait_for 20 grep -q '^attached' "$T/told" || fail "$2: no attach"
	wait_for 10 grep -qE "sbinject: .*'$2' is pending: .*$1" "$T/sb.err" || fail "$2: it does not say '$1'"
	sb_stop
	grep -qE "^pending: $2: .*$1" "$T/sb.err" || fail "$2: the summary does not say '$1'"
}
waits "'getpid' is defined in libc.so.6" libc.so:getpid
waits "written ':@calls.c:44'" calls.c:44
waits "':victim_work' is a function" calls.c:victim_work
waits 'functions of the kernel' vmlinux:do_sys_open
waits "written 'py:MODULE:QUALNAME'" mymod.py:f
waits 'there is no such file' /nowhere/lib.so:f
cp "$V/victim-lib.so" "$T/awaited.so"
waits "as soon as $T/awaited.so is loaded" "$T/awaited.so:lib_fn"
! grep -q warning "$T/sb.err" || fail 'a library that is there is no warning'
"$SB" list -p "$target" calls.c:44 >"$T/list" 2>&1
grep -q "written ':@calls.c:44'" "$T/list" || fail "list: $(cat "$T/list")"

# One that matches has no such word.
sb -p "$target" libc.so.6:clock_nanosleep 0 --for 10ms
ended 0
! grep -q pending "$T/sb.err" || fail 'what is hooked is called pending'

# The target is Python: a dotted name is a module of it.
if command -v python3 >/dev/null; then
	python3 -c 'import sys, time
print("ready", flush=True)
time.sleep(1000)' >"$T/python.out" &
	pids+=($!)
	interpreter=$!
	wait_for 20 said python ready || fail 'no Python'
	target=$interpreter waits "written 'py:my.mod:f'" my.mod:f
fi

# A command that starts: what no library that it loads will change.
sb vmlinux:f later.so:f -- true
ended 0
told "warning: target 'vmlinux:f': functions of the kernel"
! grep -q "warning.*later.so" "$T/sb.err" || fail 'a command may load what it will'

# sbctl says it, too.
sb_start -p "$target" :victim_work 0
await_session
"$CTL" add libc.so:getpid 5us >"$T/ctl.out" 2>"$T/ctl.err" || fail "$(cat "$T/ctl.err")"
same 'sbctl add' "$(cat "$T/ctl.out")" 'Added target: libc.so:getpid'
grep -q "^sbctl: libc.so:getpid is pending: .*'getpid' is defined in libc.so.6" "$T/ctl.err" ||
	fail "sbctl add does not say pending: $(cat "$T/ctl.err")"
sb_stop

# The command without --.
for words in "$V/calls -n 10" "$V/calls" 'sleep 1'; do
	# shellcheck disable=SC2086 # words
	sb :victim_work 1us $words
	ended 2
	told "if '${words%% *}' is the command to run, write -- before it"
done
sb :victim_work 1us no-such-program
ended 2
! grep -q -- '-- goes before' "$T/sb.err" || fail 'a command that is not there'
finish calls "$target"
