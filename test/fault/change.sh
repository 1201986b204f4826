#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL of the tracer, or of both, in the middle of taking a target's hooks out: the rest goes, too.
# limit: 120 s
. "$SRC/test/fault/walk.bash"

killed() { # WHERE OPTION...: from then on the target must be as it was
	start calls "$V/calls" -t 2
	snapshot "$pid" -t
	sb_start -p "$pid" :victim_work 2us :victim_other 0 "${@:2}"
	wait_for 20 hooked "$pid" || fail "$1: no hook was planted"
	wait_for 20 "$CTL" status || fail "$1: no session"
	timeout 20 "$CTL" remove :victim_work >/dev/null 2>&1
	case $1 in
	*=error) sb_stop ;;
	*) sb_wait ;;
	esac
	[ "$rc" -ne 0 ] || [[ $1 = *=error ]] || fail "$1 was not reached"
	case $1 in *both) sb recover -p "$pid"; ended 0 "$1" ;; esac
	wait_for 10 clean || fail "$1: the target stays hooked"
	unchanged "$pid" -t
	finish calls "$pid"
}

for action in error kill-tracer kill-both; do
	export SBINJECT_FAULT=unplant-text:1=$action
	killed "$SBINJECT_FAULT"
done
SBINJECT_FAULT=unplant-text:1=error # a trap that its tracer leaves behind kills: that is known
killed "$SBINJECT_FAULT" --mechanism int3
