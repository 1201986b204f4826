# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154,SC2034 # names of lib.sh; results for the case
#
# What the cases of both mechanisms share: each entry of a victim is hooked, it is called, and
# hits must equal calls. After test/lib.sh.

# count_all MECHANISM VICTIM PID GATE NAME...: hooks the names, lets the victim call them, detaches
count_all() {
	local mechanism=$1 victim=$2 target=$3 gate=$4 n i=0 targets=()
	shift 4

	for n; do targets+=(":$n" 0); done
	attach "$target" "${targets[@]}" --mechanism "$mechanism"
	touch "$gate"
	wait_for 40 said "$victim" '^called$' || fail 'the calls were not made'
	sb_stop INT
	unchanged "$target"
	finish "$victim" "$target"
	ended 0
	for n; do
		same "outcome of $n" "$(j targets.$i.outcome)" counted
		same "mechanism of $n" "$(j targets.$i.sites.0.mechanism)" "$mechanism"
		same "hits of $n" "$(j targets.$i.hits)" "$(calls "$victim" "$n")"
		i=$((i + 1))
	done
}

# shapes MECHANISM CALLS: the functions in C
shapes() {
	start shapes "$V/shapes" "$2" "$T/gate"
	snapshot "$pid"
	count_all "$1" shapes "$pid" "$T/gate" shape_recurse shape_tail shape_tailed shape_jump \
		shape_frames shape_many shape_float shape_variadic shape_struct
}

# entries MECHANISM CALLS: those in assembly; what list refuses, with a reason, is left out.
# $taken: how many were hooked, $all: of how many, $refused: the names of the others
entries() {
	local mechanism=$1 n line names hooked=()

	names=$(sed -n 's/^FUNC \(as_.*\)/\1/p; s/^TIGHT \(as_.*\)/\1/p' \
		"$SRC/test/victim/arch/$(uname -m)/shapes.S" | grep -v '^as_call_')
	start asm "$V/asm-shapes" "$2" "$T/gate"
	snapshot "$pid"
	sb list -p "$pid" ':as_*' --mechanism "$mechanism"
	ended 0
	refused=' '
	for n in $names; do
		line=$(grep -E "[[:space:]]${n}[[:space:]]" "$T/sb.out") ||
			fail "list does not show $n"
		if [[ $line =~ [[:space:]]${mechanism}$ ]]; then
			hooked+=("$n")
			continue
		fi
		refused="$refused$n "
		echo "$line"
		[ "$(echo "$line" | wc -w)" -gt 8 ] || fail "$n is refused without a reason: $line"
	done
	count_all "$mechanism" asm "$pid" "$T/gate" "${hooked[@]}"
	taken=${#hooked[@]} all=$(echo "$names" | wc -w)
}
