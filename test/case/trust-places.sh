#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A process of another user cannot choose what a uprobe is put on: an IFUNC that it answers with a
# place in another file, or in the midst of a function, is refused; and it cannot choose the backend.
# beside others
. "$SRC/test/lib.sh"
own_victims
need_root
need setpriv
nobody() { exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
chmod 755 "$T" && mkdir -m 755 "$T/open"
cp "$V/astray" "$V/calls" "$V/odd" "$T/open/"
touch "$T/astray.out" "$T/astray.err"

start astray nobody "$T/open/astray"
astray=$pid
snapshot "$astray" -t
# By ptrace only where a function begins: what it answers then is its own affair.
refuses 3 'far_fn at 0x.*no function' -p "$astray" :far_fn 0 --for 1ms
refuses 3 'near_fn at 0x.*no function' -p "$astray" :near_fn 0 --for 1ms
sb list -p "$astray" :foreign_fn
ended 0
if "$SB" --backend uprobe -a "$V/calls:victim_work" 0 --for 1ms >/dev/null 2>&1; then
	for fn in far_fn near_fn; do
		refuses 3 "$fn at 0x.*no function" --backend uprobe -p "$astray" ":$fn" 0 --for 1ms
	done
	refuses 3 'implementation in another file' --backend uprobe -p "$astray" :foreign_fn 0 --for 1ms
	refuses 3 'implementation in another file' --backend uprobe -a :foreign_fn 0 --for 1ms
	# Two of the user's own that trace each other: inject is refused, and uprobe is not taken instead.
	start calls nobody "$T/open/calls"
	calls=$pid
	start tracer nobody "$T/open/odd" tracer "$calls"
	refuses 4 "traced already" -p "$calls" :victim_work 0 --for 1ms
	told "process $calls is another user's"
	told 'backend uprobe'
	! grep 'taking' sb.err || fail 'uprobes were taken'
	sb --backend uprobe -p "$calls" :victim_work 0 --for 50ms --json "$T/run.json"
	ended 0
	same backend "$(j backend)" uprobe
	finish tracer "$pid"
	finish calls "$calls"
fi
unchanged "$astray" -t
finish astray "$astray"
