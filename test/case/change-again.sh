#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A hook that was taken out comes again, under its own name or another target's, by a jump or a trap;
# those that were planted with it stay known. All of it is undone at the end.
# beside others
. "$SRC/test/lib.sh"

ctl() { "$CTL" "$@" >"$T/ctl.out" 2>"$T/ctl.err" || fail "sbctl $*: $(cat "$T/ctl.err")"; }
hits_of() { ctl list && sed -n "s/^$1 .*hits=\\([0-9]*\\).*/\\1/p" "$T/ctl.out"; }
grew() { [ "$(hits_of "$1")" -gt "${2:-0}" ]; }

again() { # OPTION...
	start calls "$V/calls" -r
	snapshot "$pid"
	attach "$pid" :victim_work 0 :victim_other 0 "$@"
	await_session
	# The lowest hook of the region goes; then everything is looked for anew.
	ctl remove :victim_work
	ctl add :victim_idle 0
	ctl remove :victim_other
	"$TOOL/textcheck" "$pid" >"$T/text"
	same 'hooks that are left' "$(grep -c '/calls+' "$T/text")" 1
	ctl add :victim_other 0
	ctl add calls:victim_work 0
	wait_for 10 grew calls:victim_work || fail "$*: nothing counts for the new target"
	wait_for 10 grew :victim_other "$(hits_of :victim_other)" || fail "$*: it does not count again"
	sb_stop
	ended 0
	for t in 0 1 2 3; do
		same "refused sites of target $t" "$(j "targets.$t.refused" | tr -d '[] \n')" ''
	done
	same 'outcome of the new target' "$(j targets.3.outcome)" counted
	unchanged "$pid"
	finish calls "$pid"
}

again
again --mechanism int3
