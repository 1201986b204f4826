#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What doctor says of a process is what happens: yes, and it can be attached to; no, and it is
# refused for that reason, untouched, with a remedy.
# limit: 120 s
# Alone: whether a thread's stack has room is seen while it sleeps only.
. "$SRC/test/lib.sh"

as='' # a command in front: who asks

# doctor PID: its status in $rc, its text in doctor.out, its JSON in doctor.json
doctor() {
	rc=0
	# shellcheck disable=SC2086 # words
	$as "$SB" doctor -p "$1" --json - >"$T/doctor.json" 2>"$T/doctor.err" || rc=$?
	# shellcheck disable=SC2086 # words
	$as "$SB" doctor -p "$1" >"$T/doctor.out" 2>>"$T/doctor.err"
	[ ! -s "$T/doctor.err" ] || fail "doctor: $(cat "$T/doctor.err")"
}

# first_no: name and reason of the first row of the process that says no
first_no() {
	local i ok
	for ((i = 0; i < $("$TOOL/jget" "$T/doctor.json" 'processes.0.checks.#'); i++)); do
		ok=$("$TOOL/jget" "$T/doctor.json" "processes.0.checks.$i.ok")
		[ "$ok" = true ] && continue
		"$TOOL/jget" "$T/doctor.json" "processes.0.checks.$i.check"
		"$TOOL/jget" "$T/doctor.json" "processes.0.checks.$i.reason"
		return
	done
}

attach_once() { # PID: status in $rc; the one that goes on meanwhile writes elsewhere
	rc=0
	# shellcheck disable=SC2086 # words
	timeout 30 $as "$SB" --backend inject -p "$1" "${2:-:lives_fn}" 1us --for 100ms >"$T/once.out" 2>"$T/once.err" || rc=$?
}

agree() { # PID WHAT [ROW [TARGET]]: with ROW: it must be no, for that
	local no name reason
	doctor "$1"
	no=$(first_no)
	name=${no%%$'\n'*} reason=${no#*$'\n'}
	attach_once "$1" "${4:-}"
	if [ -z "${3:-}" ]; then
		[ -z "$no" ] || fail "$2: doctor says no: $no"
		[ "$rc" -eq 0 ] || fail "$2: doctor says yes; the attach: status $rc"
		return
	fi
	same "$2: doctor's row" "$name" "$3"
	[ "$rc" -ne 0 ] || fail "$2: doctor says '$reason'; the attach succeeds"
	grep -qF -- "$reason" "$T/once.err" || fail "$2: the attach does not say '$reason'"
	grep -qE "^  $3 +no: .*; ." "$T/doctor.out" ||
		grep -qF "  $3" "$T/doctor.out" || fail "$2: doctor's table lacks the row"
	[ "$(wc -l <"$T/once.err")" -ge 2 ] || fail "$2: no remedy"
}

start calls "$V/lives" leader
snapshot "$pid"
agree "$pid" 'a leader that has ended'
unchanged "$pid"
finish calls "$pid"

refused() { # MODE ROW
	start "$1" "$V/lives" "$1"
	snapshot "$pid"
	agree "$pid" "$1" "$2"
	unchanged "$pid"
	finish "$1" "$pid"
}
refused tightest stacks
refused nofile descriptors
refused noroom 'address space'

start strict "$V/confined" strict
snapshot "$pid"
agree "$pid" strict seccomp :confined_fn
unchanged "$pid"
finish strict "$pid"

doctor 999999999
same 'the row of nobody' "$(first_no | head -n 1)" 'is a process'

start zombie "$V/odd" zombie
agree "$(sed -n 's/^pid //p' "$T/zombie.out")" 'a zombie' 'is a process'
finish zombie "$pid"

start calls "$V/calls" -t 2
target=$pid
snapshot "$target" -t
for tid in /proc/"$target"/task/*; do tid=${tid##*/}; done
agree "$tid" 'a thread' 'is a process'
start tracer "$V/odd" tracer "$target"
agree "$target" 'a traced one' 'not traced by another' :victim_work
finish tracer "$pid"
attach "$target" :victim_work 1us --no-follow
await_untraced "$target"
agree "$target" 'a hooked one' 'not hooked yet' :victim_work
sb_stop
agree "$target" 'one that was hooked' '' :victim_work
unchanged "$target" -t
finish calls "$target"

need_root
need setpriv
mkdir -m 777 "$T/open"
cp "$SB" "$T/open/"
SB=$T/open/sbinject
as='setpriv --reuid=65534 --regid=65534 --clear-groups'
start calls "$V/calls"
snapshot "$pid"
agree "$pid" "another user's" permission :victim_work
unchanged "$pid"
finish calls "$pid"
cp "$V/confined" "$V/lives" "$T/open/"
# shellcheck disable=SC2086 # words
start few $as "$T/open/confined" few
snapshot "$pid"
agree "$pid" 'a confined one' seccomp :confined_fn
unchanged "$pid"
finish few "$pid"
# shellcheck disable=SC2086 # words
start nodump $as "$T/open/lives" nodump
agree "$pid" 'a dumpable one'
kill -USR1 "$pid"
wait_for 5 said nodump '^changed$' || fail 'it does not change'
agree "$pid" 'one that is not dumpable' permission
let_go "$pid"
finish nodump "$pid"
