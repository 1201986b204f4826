#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A session of uprobes is changed while it runs, with the same verbs and forms as any; no thread is
# stopped for it, and what is removed is out.
# beside idle work
. "$SRC/test/lib.sh"
need_uprobe

ctl() { "$CTL" "$@" >"$T/ctl.out" 2>"$T/ctl.err" || fail "sbctl $*: $(cat "$T/ctl.err")"; }
no() { # ERROR ARGS...
	! "$CTL" "${@:2}" >"$T/ctl.out" 2>"$T/ctl.err" || fail "sbctl ${*:2} was accepted"
	grep -q "^sbctl: $1" "$T/ctl.err" || fail "sbctl ${*:2}: $(cat "$T/ctl.err")"
}
hits_of() { ctl list && sed -n "s/^$1 .*hits=\\([0-9]*\\).*/\\1/p" "$T/ctl.out"; }
grows() {
	local was now
	was=$(hits_of "$1")
	sleep 0.3
	now=$(hits_of "$1")
	[ "${now:-0}" -gt "${was:-0}" ]
}

start calls "$V/calls" -p 20000
attach_told "$pid" --backend uprobe :victim_work 5us
wait_for 10 grows :victim_work || fail 'it does not count'
ctl update :victim_work 30us
ctl list
grep -q '^:victim_work delay_ns=30000 hits=[0-9]*$' "$T/ctl.out" || fail "list: $(cat "$T/ctl.out")"
no ERANGE update :victim_work 11ms
no EEXIST add :victim_work 5
no ENOENT add :no_such_function 5
no EINVAL add :victim_idle 5 thread=x
ctl disable
was=$(hits_of :victim_work)
sleep 0.3
same 'hits while disabled' "$(hits_of :victim_work)" "$was"
ctl enable
wait_for 10 grows :victim_work || fail 'it does not count again'
ctl add libc.so.6:clock_nanosleep 0
wait_for 10 grows libc.so.6:clock_nanosleep || fail 'what was added does not count'
ctl remove :victim_work
was=$("$TOOL/textcheck" "$pid" | grep -c "$V/calls")
same 'places in the program after removal' "$was" 0
ctl add :victim_work 1us
wait_for 10 grows :victim_work || fail 'it does not count after it was added again'
ctl status
grep -q '^enabled: 1$' "$T/ctl.out" && grep -q '^targets: 2$' "$T/ctl.out" || fail "$(cat "$T/ctl.out")"
ctl stop
sb_wait
ended 0
same backend "$(j backend)" uprobe
let_go "$pid"
finish calls "$pid"
