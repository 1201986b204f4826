# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# walk ACTION: at each named fault point, at its first, second and third passage, ACTION; then the
# target must run on, be restored (by whoever is left, or by `recover` where nobody is) and be as
# it was. Needs the build that has fault points: make FAULT=1.
. "$SRC/test/lib.sh"

SB=$BUILD-fault/sbinject
[ -x "$SB" ] || skip "$SB is not built (make FAULT=1)"

points() {
	grep -hoE 'fault_point\((undo \? )?"[a-z-]+"( : "[a-z-]+")?' "$SRC"/{src,inject}/*.c |
		grep -oE '"[a-z-]+"' | tr -d '"' | sort -u
}

released() { grep -q '^TracerPid:	0$' "/proc/$pid/status"; }
clean() { released && "$TOOL/textcheck" "$pid"; }

# run WHERE ARGS...: sbinject with that fault; its status in $rc, without a word from the shell
run() {
	local where=$1
	shift
	rc=$(SBINJECT_FAULT=$where timeout 30 "$SB" "$@" >"$T/sb.out" 2>"$T/sb.err" </dev/null
		echo $?) 2>/dev/null
}

# one POINT N ACTION, in a subshell: 0 reached and well, 3 never reached, 1 not well
one() {
	local where="$1:$2=$3" pids=()

	trap cleanup EXIT
	start calls "$V/calls" -t 2
	snapshot "$pid" -t
	run "$where" -p "$pid" :victim_work 2us :victim_other 0 --for 150ms --json "$T/run.json"
	[ "$rc" -ne 124 ] || fail "$where: sbinject hangs"
	if [ "$3" = kill-target ]; then # only: sbinject ends
		! kill -0 "$pid" 2>/dev/null || exit 3
		echo "$where: status $rc"
		exit 0
	fi
	kill -0 "$pid" 2>/dev/null || fail "$where: the target died"
	wait_for 10 released || fail "$where: the target stays traced"
	if [ "$3" = kill-both ] && [ "$rc" -ne 0 ]; then
		status=$rc
		run '' recover -p "$pid"
		[ "$rc" -eq 0 ] || fail "$where: recover: status $rc"
		rc=$status
	else
		wait_for 10 clean || fail "$where: the target stays hooked"
	fi
	(unchanged "$pid" -t) || fail "$where: the target was changed"
	finish calls "$pid"
	[ "$rc" -ne 0 ] || exit 3
	echo "$where: status $rc, restored"
	exit 0
}

walk() {
	local point n status reached=0 bad=0

	[ "$(points | wc -l)" -gt 5 ] || fail 'no fault points found'
	for point in $(points); do
		for n in 1 2 3; do
			status=0
			(one "$point" $n "$1") || status=$?
			case $status in
			0) reached=$((reached + 1)) ;;
			3) break ;;
			*) bad=$((bad + 1)) ;;
			esac
		done
	done
	[ $bad -eq 0 ] || fail "$bad passages of fault points went wrong"
	more 'fault points reached' $reached 5
}
