#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Short, looping, calling, rip-relative and flag-reading entries: right, or refused by name.
. "$SRC/test/lib.sh"

names=$(sed -n 's/^FUNC \(as_.*\)/\1/p; s/^TIGHT \(as_.*\)/\1/p' \
	"$SRC/test/victim/arch/$(uname -m)/shapes.S" | grep -v '^as_call_')
start asm "$V/asm-shapes" 5000 "$T/gate"
snapshot "$pid"
targets=()
for n in $names; do targets+=(":$n" 0); done
attach "$pid" "${targets[@]}" --mechanism jump
touch "$T/gate"
wait_for 40 said asm '^called$' || fail 'the calls were not made'
sb_stop INT
unchanged "$pid"
finish asm "$pid"
ended 0
i=0 taken=0 refused=' '
for n in $names; do
	case $(j targets.$i.outcome) in
	counted)
		same "hits of $n" "$(j targets.$i.hits)" "$(calls asm "$n")"
		taken=$((taken + 1))
		;;
	refused)
		reason=$(j targets.$i.sites_refused.0.reason)
		[ -n "$reason" ] || fail "$n: refused without a reason"
		echo "refused: $n: $reason"
		refused="$refused$n "
		;;
	*) fail "$n: $(j targets.$i.outcome)" ;;
	esac
	i=$((i + 1))
done
more 'entries hooked' "$taken" $((i / 2))
# What a jump cannot take is refused, never taken in silence.
for n in as_into as_other_into as_tight; do
	[[ $refused == *" $n "* ]] || fail "$n was hooked by a jump"
done
