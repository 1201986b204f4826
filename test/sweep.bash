# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # rc is set by sb
# What the cases of sweeps share; after test/lib.sh. A verdict takes a quiet enough machine: what
# comes out INCONCLUSIVE is tried again, and the opposite of the truth is a failure at once. What stays
# INCONCLUSIVE though the sweeps themselves have seen no noise is a failure, too; only the noise that
# their documents show lets a case be skipped.

# sweep PID ARGS...: runs one to its end; streams in sb.out and sb.err, document in sweep.json. What a
# noisy machine makes longer has longer to end: the time asked for, and what comes before and after it.
sweep() {
	local asked=" $* " sb_limit=50

	# shellcheck disable=SC2034 # sb reads it
	[[ $asked != *' --time '+([0-9])'s '* ]] || { asked=${asked#* --time } sb_limit=$((${asked%%s *} + 45)); }
	sb sweep -q -p "$@" --json "$T/sweep.json"
}
sj() { "$TOOL/jget" "$T/sweep.json" "$1"; }
verdict() { sj targets.0.verdict; }

# truth SHAPE FUNCTION: what the victim says kappa is
truth() { sed -n "s/^truth $2 \([0-9.]*\) .*/\1/p" "$T/$1.out"; }

# holds N KAPPA: the interval of target N holds it, or misses it by less than a fifth
holds() {
	local lo hi

	lo=$(sj "targets.$1.kappa_ci.0") hi=$(sj "targets.$1.kappa_ci.1")
	awk -v lo="$lo" -v hi="$hi" -v k="$2" 'BEGIN { exit !(lo - 0.2 <= k && k <= hi + 0.2) }'
}

# Nothing is tried again when a test has taken so long: its time limit is not to say what noise is.
TRY_AGAIN_S=60
quiet_enough() { [ "$SECONDS" -lt "$TRY_AGAIN_S" ] || give_up "$1"; }

# noise VERDICT...: what the last sweep's document says of the machine, where it explains that the first
# target has none of these verdicts; nothing: the machine was quiet. Equal arms (A/A) show the scatter:
# so much of the largest dose has to be told apart for the verdict, 0.2 to be CRITICAL, a third of the
# threshold else (the interval of kappa is wider, of doses that are smaller). Where no processor was idle a
# delay takes one from others, and what is hidden is felt.
noise() {
	local n

	n=$(sj 'targets.0.doses.#')
	awk -v want="$1" -v lo="$(sj gates.aa_ci.0)" -v hi="$(sj gates.aa_ci.1)" -v t0="$(sj targets.0.t0_ns)" \
		-v x="$(sj "targets.0.doses.$((n > 0 ? n - 1 : 0)).x_ns")" -v threshold="$(sj threshold)" \
		-v busy="$(sj cpus_busy)" -v steal="$(sj cpus_steal)" 'BEGIN {
		critical = want ~ /^ *CRITICAL( PARTIAL)? *$/
		known = lo + 0 == lo && hi + 0 == hi && t0 > 0 && x > 0
		apart = known ? (hi - lo) / 2 * t0 / x : 0
		if (steal + 0 >= 0.02)
			printf "the host took %.0f %% of the processors; ", 100 * steal
		if (apart > (critical ? 0.2 : threshold / 3))
			printf "equal arms may differ by %.0f %% of the largest dose; ", 100 * apart
		if (busy + 0 >= 0.9 && !(critical && known))
			printf "the processors were %.0f %% busy; ", 100 * busy
	}'
}

# tried VERDICT...: takes down what noise a sweep without the verdict has seen. give_up WHAT: no more
# tries. By chance one sweep is in doubt where equal arms do not differ, and not two.
tries=0 calm=0 seen=''
tried() {
	local n

	n=$(noise "$1")
	tries=$((tries + 1))
	[ "$n" ] || calm=$((calm + 1))
	seen+=$n
	echo "try $tries: $(verdict), not $1: ${n:-no noise}"
}
give_up() {
	[ "$calm" -lt 2 ] || fail "$1, and $calm of $tries sweeps saw no noise: $(cat "$T/sb.out")"
	skip "too noisy a machine: $1: $seen"
}

# longer ARGS...: in $args, with the time that the last sweep says would be enough, up to four times
# what was asked for; twice that where it does not know
longer() {
	local i asked needed

	args=("$@")
	for ((i = 0; i < $#; i++)); do
		[ "${args[i]}" = --time ] || continue
		asked=${args[i + 1]%s}
		needed=$(sj time_needed_s)
		args[i + 1]=$(awk -v a="$asked" -v n="${needed/null/0}" 'BEGIN {
			t = n > a ? 1.2 * n : 2 * a
			printf "%ds", (t > 4 * a ? 4 * a : t + 0.99) }')
	done
}

# finds VERDICT... -- PID ARGS...: one of these verdicts (of the first target) in one of 4 tries, the
# later ones longer; INCONCLUSIVE and PARTIAL are what noise makes of the others, everything else is
# wrong
finds() {
	local want=" $1 " try v args

	shift
	tries=0 calm=0 seen=''
	args=("$@")
	for try in 1 2 3 4; do
		sweep "${args[@]}" --seed "$try"
		[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "exit status $rc"
		v=$(verdict)
		# Equal arms that differ by chance (1 run in 100) prove nothing, whatever the verdict.
		[ "$(sj gates.unproven)" != true ] || { v=UNPROVEN && tried "$want" && quiet_enough "$v" && continue; }
		[[ $want == *" ${v// /_} "* ]] && calm=0 && return
		[[ $v == INCONCLUSIVE || $v == PARTIAL ]] ||
			fail "$v, not$want: $(cat "$T/sb.out")"
		tried "$want"
		[ "$tries" -eq 1 ] && [ ! "$seen" ] || quiet_enough "$v, not$want"
		[ "$try" -gt 1 ] || longer "$@"
	done
	give_up "$v four times, not$want"
}

# measures KAPPA VERDICT PID ARGS...: as finds, and the interval of the first target holds it. One
# interval in twenty misses, and on a busy machine more: not three in a row.
measures() {
	local kappa=$1

	shift
	for _ in 1 2 3; do
		finds "$@"
		holds 0 "$kappa" && return
	done
	fail "the interval does not hold $kappa: $(cat "$T/sb.out")"
}
