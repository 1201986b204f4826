#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A session with time=yes is changed while it runs: what began while it was off is no call of the
# time after it, and a target that comes and goes leaves nothing.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"

[ -x "$V/torture" ] || skip 'there is no C++ compiler'
ctl() { "$CTL" "$@" >"$T/ctl.out" 2>"$T/ctl.err" || fail "sbctl $*: $(cat "$T/ctl.err")"; }

# Each function leaves in mid-call again and again, and the same frames are used all the time.
start torture "$V/torture" -d 1000000 plain jump throw recurse
victim=$pid
attach "$victim" :t_leaf 0 time=yes :t_jump 0 time=yes :t_pass 0 time=yes :t_node 0 time=yes
await_session
for _ in {1..12}; do
	ctl disable
	sleep 0.3
	ctl enable
	sleep 0.05
done
for _ in {1..6}; do
	ctl add :t_outer 0 time=yes
	ctl update :t_leaf 2us
	sleep 0.05
	ctl update :t_leaf 0
	ctl remove :t_outer
	ctl remove :t_jump
	sleep 0.3
	ctl add :t_jump 0 time=yes
	sleep 0.1
done
sb_stop INT
ended 0
let_go "$victim"
for i in 0 1 2 3; do
	more "target $i: calls" "$(j targets.$i.spans.calls)" 100
	# Of a call that lost its processor that is hundreds of ms; a wrong begin or end makes it seconds.
	less "target $i: the longest" "$(j targets.$i.spans.max_ns)" 2000000000
done
finish torture "$victim"
