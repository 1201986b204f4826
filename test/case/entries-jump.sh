#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Short, looping, calling, rip-relative and flag-reading entries: right, or refused by name.
. "$SRC/test/lib.sh"

names=$(sed -n 's/^FUNC \(as_.*\)/\1/p; s/^TIGHT \(as_.*\)/\1/p' \
	"$SRC/test/victim/arch/$(uname -m)/shapes.S" | grep -v '^as_call_')
start asm "$V/asm-shapes" 5000 "$T/gate"
snapshot "$pid"
sb list -p "$pid" ':as_*' --mechanism jump
ended 0
targets=() taken='' refused=' '
for n in $names; do
	line=$(grep -E "[[:space:]]${n}[[:space:]]" "$T/sb.out") || fail "list does not show $n"
	if [[ $line =~ [[:space:]]jump$ ]]; then
		targets+=(":$n" 0) taken="$taken $n"
	else
		refused="$refused$n "
		echo "$line"
		[ "$(echo "$line" | wc -w)" -gt 8 ] || fail "$n is refused without a reason: $line"
	fi
done
attach "$pid" "${targets[@]}" --mechanism jump
touch "$T/gate"
wait_for 40 said asm '^called$' || fail 'the calls were not made'
sb_stop INT
unchanged "$pid"
finish asm "$pid"
ended 0
i=0
for n in $taken; do
	same "outcome of $n" "$(j targets.$i.outcome)" counted
	same "hits of $n" "$(j targets.$i.hits)" "$(calls asm "$n")"
	i=$((i + 1))
done
all=$(echo "$names" | wc -w)
more 'entries hooked' $i $((all / 2))
# What a jump cannot take is refused, never taken in silence.
for n in as_other_into as_tight; do
	[[ $refused == *" $n "* ]] || fail "$n was hooked by a jump"
done
