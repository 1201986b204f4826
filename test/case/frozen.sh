#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# A target that its cgroup freezes: refused if it is frozen already; if it is frozen while hooked,
# the detach gives up after a while, says what stays, and `recover` takes that out later.
# limit: 90 s
. "$SRC/test/lib.sh"

need_root
groups=()
leave() {
	local g
	for g in ${groups[@]+"${groups[@]}"}; do
		thaw "$g" 2>/dev/null
		for _ in 1 2 3 4 5 6 7 8 9; do
			xargs -r -n1 <"$g/cgroup.procs" 2>/dev/null | while read -r p; do
				kill -KILL "$p" 2>/dev/null
			done
			rmdir "$g" 2>/dev/null && break
			sleep 0.1
		done
	done
}
at_end 'leave; cleanup'

freeze() { if [ -e "$1/freezer.state" ]; then echo FROZEN >"$1/freezer.state"; else echo 1 >"$1/cgroup.freeze"; fi; }
thaw() { if [ -e "$1/freezer.state" ]; then echo THAWED >"$1/freezer.state"; else echo 0 >"$1/cgroup.freeze"; fi; }
frozen() { grep -qE '^FROZEN|^frozen 1' "$1/freezer.state" "$1/cgroup.events" 2>/dev/null; }

# try ROOT: with a cgroup made there
try() {
	local group=$1/sbinject-test-$$

	mkdir "$group" 2>/dev/null || return 1
	groups+=("$group")
	[ -e "$group/freezer.state" ] || [ -e "$group/cgroup.freeze" ] || return 1
	start calls "$V/calls" -t 3
	echo "$pid" >"$group/cgroup.procs" || return 1
	snapshot "$pid" -t

	freeze "$group"
	wait_for 5 frozen "$group" || fail "$1: it does not freeze"
	refuses 4 'frozen' --backend inject -p "$pid" :victim_work 5us --for 100ms
	thaw "$group"
	unchanged "$pid" -t

	attach "$pid" :victim_work 5us
	freeze "$group"
	wait_for 5 frozen "$group" || fail "$1: it does not freeze"
	sb_stop
	ended 1 "$1: frozen at detach"
	told "recover -p $pid"
	same "$1: left_behind" "$(j left_behind)" 1
	"$TOOL/textcheck" "$pid" || fail "$1: its code is not restored"
	thaw "$group"
	sleep 0.3
	kill -0 "$pid" || fail "$1: it died when it was thawed"
	sb recover -p "$pid"
	ended 0 "$1: recover"
	unchanged "$pid" -t
	finish calls "$pid"
	done_one=1
}

done_one=''
for root in /sys/fs/cgroup/freezer /sys/fs/cgroup/unified /sys/fs/cgroup; do
	[ -d "$root" ] && try "$root"
done
[ -n "$done_one" ] || skip 'no cgroup can be made and frozen'
