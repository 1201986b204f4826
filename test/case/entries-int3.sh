#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The same entries with the one-byte hook, which takes nearly all of them.
. "$SRC/test/lib.sh"

names=$(sed -n 's/^FUNC \(as_.*\)/\1/p; s/^TIGHT \(as_.*\)/\1/p' \
	"$SRC/test/victim/arch/$(uname -m)/shapes.S" | grep -v '^as_call_')
start asm "$V/asm-shapes" 60 "$T/gate"
snapshot "$pid"
sb list -p "$pid" ':as_*' --mechanism int3
ended 0
targets=() taken='' refused=' '
for n in $names; do
	line=$(grep -E "[[:space:]]${n}[[:space:]]" "$T/sb.out") || fail "list does not show $n"
	if [[ $line =~ [[:space:]]int3$ ]]; then
		targets+=(":$n" 0) taken="$taken $n"
	else
		refused="$refused$n "
		echo "$line"
		[ "$(echo "$line" | wc -w)" -gt 8 ] || fail "$n is refused without a reason: $line"
	fi
done
attach "$pid" "${targets[@]}" --mechanism int3
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
more 'entries hooked' $i $((all * 3 / 4))
