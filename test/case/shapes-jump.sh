#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Recursion, tail calls, longjmp, backtraces, every kind of argument, a small signal stack.
. "$SRC/test/lib.sh"

names='shape_recurse shape_tail shape_tailed shape_jump shape_frames shape_many shape_float
shape_variadic shape_struct'
start shapes "$V/shapes" 20000 "$T/gate"
snapshot "$pid"
targets=()
for n in $names; do targets+=(":$n" 0); done
attach "$pid" "${targets[@]}" --mechanism jump
touch "$T/gate"
wait_for 40 said shapes '^called$' || fail 'the calls were not made'
sb_stop INT
unchanged "$pid"
finish shapes "$pid"
ended 0
i=0
for n in $names; do
	same "mechanism of $n" "$(j targets.$i.sites.0.mechanism)" jump
	same "hits of $n" "$(j targets.$i.hits)" "$(calls shapes "$n")"
	i=$((i + 1))
done
