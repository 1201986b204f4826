#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs as the only program of a kernel with Yama: with ptrace_scope 1 a command that is launched can be
# traced by its tracer, and by no other process of its user, before and after the tracer has gone.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /tmp
mkdir -p /run
mknod -m 666 /dev/null c 1 3 # of jobs in the background
export SBINJECT_RUNTIME_DIR=/tmp/run HOME=/tmp
echo "== $(uname -r), ptrace_scope=$(cat /proc/sys/kernel/yama/ptrace_scope)"

fail() { echo "FAIL $*"; }
die() {
	fail "$@"
	poweroff -f
}
user="/bin/setpriv --reuid=1000 --regid=1000 --clear-groups" # one process, so that $! is the program's
until_true() { # SECONDS COMMAND...
	n=$(($1 * 10))
	shift
	until "$@" 2>/dev/null; do
		[ $n -gt 0 ] || return 1
		n=$((n - 1))
		sleep 0.1
	done
}
field() { sed -n "s/^$2:	//p" "/proc/$1/status"; }
is() { [ "$(field "$1" "$2")" = "$3" ]; }
is_not() { [ "$(field "$1" "$2")" != "$3" ]; }
child_called() { # PARENT NAME: $found
	for found in $(cat "/proc/$1/task/$1/children"); do
		[ "$(cat "/proc/$found/comm")" = "$2" ] && return 0
	done
	return 1
}
unhooked() { ! grep -q memfd:sbinject "/proc/$1/maps"; }
tracer_gone() { ! child_called "$1" sbinject-tracer || grep -q '^State:	Z' "/proc/$found/status"; }
# Another process of the same user, which is no ancestor.
stranger_may() { $user /bin/hold "$1" 0 2>/tmp/why; }
refused() { # PID WHEN
	! stranger_may "$1" || fail "$2 a stranger may trace it"
	grep -q 'not permitted' /tmp/why || fail "$2: $(cat /tmp/why)"
	! $user head -c 1 "/proc/$1/mem" 2>/tmp/why || fail "$2 a stranger reads its memory"
	grep -q 'Permission denied' /tmp/why || fail "$2: memory: $(cat /tmp/why)"
}
plain() { # SCOPE: a program that no tool has launched
	echo "$1" >/proc/sys/kernel/yama/ptrace_scope
	$user /bin/calls -r >/tmp/plain 2>&1 &
	plain=$!
	until_true 20 grep -q ready /tmp/plain || die "it does not start: $(cat /tmp/plain)"
}

# The test's own means: where Yama allows it, a stranger may; where not, not.
plain 0
stranger_may $plain || fail "scope 0: $(cat /tmp/why)"
echo 1 >/proc/sys/kernel/yama/ptrace_scope
refused $plain 'not launched:'
kill $plain
wait $plain

launched() { # NAME OPTION...: $sb and $child
	rm -f /tmp/out /tmp/err /tmp/run.json
	$user /bin/sbinject :victim_work 0 --json /tmp/run.json "$@" -- /bin/calls -r >/tmp/out 2>/tmp/err &
	sb=$!
	until_true 20 grep -q ready /tmp/out || die "$*: it does not start: $(cat /tmp/err)"
	child_called $sb calls || die "$*: no command"
	child=$found
}
ends() { # NAME: as it should, with the effect that was asked for
	kill -TERM $child
	wait $sb || fail "$1: status $?: $(cat /tmp/err)"
	grep -q 'self-check ok' /tmp/out || fail "$1: $(tail -n 3 /tmp/out)"
}
hit() { sed -n 's/^ *"hits": \([0-9]*\),*$/\1/p' /tmp/run.json | head -n 1 | grep -q '[1-9]'; }

for how in '' --no-follow; do
	launched $how --for 3s
	refused $child "$how, hooked:"
	until_true 30 is $child TracerPid 0 || fail "$how: it stays traced"
	# Without following the tracer lets go at once, and comes again to take the hooks out.
	until_true 30 unhooked $child || fail "$how: it stays hooked"
	until_true 30 tracer_gone $sb || fail "$how: the tracer stays"
	refused $child "$how, after detach:"
	user_text=$(textcheck $child 2>&1) || fail "$how: the text differs: $user_text"
	ends "$how"
	hit || fail "$how: no hits: $(cat /tmp/err)"
done

# The tracer dies: the command line is the command's parent, and restores it.
launched
until_true 20 is_not $child TracerPid 0 || fail 'killed: it is not traced'
kill -KILL "$(field $child TracerPid)"
until_true 20 is $child TracerPid 0 || fail 'killed: it stays traced'
until_true 30 unhooked $child || fail 'killed: it stays hooked'
refused $child 'killed tracer:'
textcheck $child >/tmp/why 2>&1 || fail "killed: the text differs: $(cat /tmp/why)"
kill -TERM $child
wait $sb
grep -q 'the tracer died; 1 process' /tmp/err || fail "killed: $(cat /tmp/err)"
grep -q 'self-check ok' /tmp/out || fail "killed: $(tail -n 3 /tmp/out)"

echo 'guest: done'
poweroff -f
