#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# At no step of attach and detach is a page of the target writable and executable at once; the one
# descriptor that it has of ours is closed by an exec, and only its owner could open it.
# limit: 90 s
. "$SRC/test/lib.sh"

SB=$BUILD-fault/sbinject
[ -x "$SB" ] || skip "$SB is not built (make FAULT=1)"
export SBINJECT_FAULT_LOG=$T/log

owner_only() { # what the tracer holds of the target is its owner's
	local tracer fd found=0
	tracer=$(awk '/^TracerPid/ { print $2 }' "/proc/$pid/status")
	for fd in /proc/"$tracer"/fd/*; do
		case $(readlink "$fd") in
		/memfd:sbinject*)
			same 'mode of the control page' "$(stat -L -c %a "$fd")" 600
			found=1
			;;
		esac
	done
	same 'control pages held by the tracer' $found 1
}

for mechanism in jump int3; do
	start calls "$V/calls" -t 2
	snapshot "$pid" -t
	rm -f "$T/log"
	attach "$pid" :victim_work 50us --mechanism $mechanism
	owner_only
	sb_stop
	ended 0
	unchanged "$pid" -t
	finish calls "$pid"
	more 'points passed' "$(grep -c '^point' "$T/log")" 20
	[ "$(grep -c '^point' "$T/log")" -lt "$(grep -c 'libc' "$T/log")" ] || fail 'no maps were seen'
	! grep -E '^[0-9a-f]+-[0-9a-f]+ .wx' "$T/log" || fail 'writable and executable'
	grep -q '/memfd:sbinject' "$T/log" || fail 'the control page was not seen'
	# /proc/PID/fdinfo: flags in octal, 02000000 is O_CLOEXEC
	awk '/^fd /{ ours = /memfd:sbinject/; n += ours }
		/^flags:/ && ours { if (int($2 / 2000000) % 2 == 0) bad++ }
		END { exit n == 0 || bad }' "$T/log" || fail 'a descriptor that an exec would keep'
done

# Children that are exec'd all the time meanwhile see their own descriptors only.
start inherit "$V/lives" inherit
for i in {1..15}; do
	sb -p "$pid" :lives_fn 1us --for 20ms
	ended 0 "round $i"
done
let_go "$pid"
finish inherit "$pid"
more 'programs started' "$(grep -c 'total 0' "$T/inherit.out")" 20
! grep -E 'memfd|sbinject' "$T/inherit.out" | grep -v "$T" || fail 'a child has our descriptor'
