# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# walk ACTION: at each named fault point, at its first, second and third passage, ACTION; then the
# target must run on, be restored (by whoever is left, or by `recover` where nobody is) and be as
# it was. Needs the build that has fault points: make FAULT=1.
. "$SRC/test/lib.sh"

SB=$SRC/build-fault/sbinject
[ -x "$SB" ] || skip 'build-fault/sbinject is not built (make FAULT=1)'

points() {
	grep -hoE 'fault_point\((undo \? )?"[a-z-]+"( : "[a-z-]+")?' "$SRC"/{src,inject}/*.c |
		grep -oE '"[a-z-]+"' | tr -d '"' | sort -u
}

released() { grep -q '^TracerPid:	0$' "/proc/$pid/status"; }
clean() { released && "$TOOL/textcheck" "$pid"; }

# one POINT N ACTION: false when the passage was never reached
one() {
	local where="$1:$2=$3" reached=1

	start calls "$V/calls" -t 2
	snapshot "$pid" -t
	rm -f "$T/run.json"
	rc=0
	SBINJECT_FAULT=$where timeout 30 "$SB" -p "$pid" :victim_work 2us :victim_other 0 \
		--for 150ms --json "$T/run.json" >"$T/sb.out" 2>"$T/sb.err" </dev/null || rc=$?
	[ "$rc" -ne 124 ] || fail "$where: sbinject hangs"
	if [ "$3" = kill-target ]; then # only: sbinject ends, and says something true
		kill -0 "$pid" 2>/dev/null || { wait "$pid"; echo "$where: status $rc"; return 0; }
		finish calls "$pid"
		return 1
	fi
	kill -0 "$pid" 2>/dev/null || fail "$where: the target died"
	[ "$rc" -eq 0 ] && reached=''
	wait_for 10 released || fail "$where: the target stays traced"
	if [ "$3" = kill-both ] && [ -n "$reached" ]; then
		SBINJECT_FAULT='' timeout 30 "$SB" recover -p "$pid" >"$T/sb.out" 2>"$T/sb.err" ||
			fail "$where: recover: status $?"
	else
		wait_for 10 clean || fail "$where: the target stays hooked"
	fi
	unchanged "$pid" -t
	finish calls "$pid"
	[ -n "$reached" ] && echo "$where: status $rc, restored"
}

walk() {
	local point n reached=0

	[ "$(points | wc -l)" -gt 5 ] || fail 'no fault points found'
	for point in $(points); do
		for n in 1 2 3; do
			one "$point" $n "$1" || break
			reached=$((reached + 1))
		done
	done
	more 'fault points reached' $reached 5
}
