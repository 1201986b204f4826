# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# walk ACTION [WAY...]: at each named fault point, at each of its passages up to MOST (5, or what
# FAULT_PASSAGES says), ACTION; then the target must run on, be restored (by the process that is left, or by
# `recover` where none is) and be as it was. Needs the build that has fault points: make FAULT=1.
#
# Ways: attach (the default); no-follow; int3; launch, of a shell that execs the victim; forks, of a
# target that forks all the time; confined, by a seccomp filter that kills; python-sleep and
# python-busy, of an interpreter that does that; exits, of functions that are hooked where they
# return; times, of functions whose calls are recorded, with values and
# stacks; tiny, of short functions that are timed, whose exits share no-ops and windows; locked, of one that locks its memory and has less
# to its limit than a region of that many hooks takes; device, of a process whose device times are taken (by a
# stand-in for CUPTI). Of POINTS, where set, and of no others; more
# than LEAST (5) must be reached.
. "$SRC/test/lib.sh"

SB=$BUILD-fault/sbinject
[ -x "$SB" ] || skip "$SB is not built (make FAULT=1)"

MOST=${FAULT_PASSAGES:-5}

points() {
	if [ -n "${POINTS:-}" ]; then
		printf '%s\n' $POINTS
		return
	fi
	grep -rhoE --include='*.c' 'fault_point\((undo \? )?"[a-z-]+"( : "[a-z-]+")?' \
		"$SRC"/{src,inject} |
		grep -oE '"[a-z-]+"' | tr -d '"' | sort -u
}

released() { grep -q '^TracerPid:	0$' "/proc/$pid/status"; }
# The device agent's own code stays, and nothing else does.
clean() { released && "$TOOL/textcheck" "$pid" && ! grep -qE 'memfd:sbinject( |-[^d])' "/proc/$pid/maps"; }
lives() { kill -0 "$pid" 2>/dev/null; }

# run WHERE ARGS...: sbinject with that fault; its status in $rc, without a word from the shell
run() {
	local where=$1
	shift
	rc=$(SBINJECT_FAULT=$where timeout 30 "$SB" "$@" >"$T/sb.out" 2>"$T/sb.err" </dev/null
		echo $?) 2>/dev/null
}

# ---- the ways ----

hooks=(:victim_work 2us :victim_other 0 --for 150ms)

# The victim's threads run all the time at the second passages of two of the actions; else they sleep
# for most of it, and leave the processors to the walks beside this one.
pace() { # WHERE: options of calls
	[[ $1 == *:2=@(error|kill-both) ]] || echo '-p 300000'
}

set_off() { # WAY WHERE: the victim and sbinject; $pid, or none where it never began
	local way=$1 where=$2

	case $way in
	launch)
		rm -f "$T/pid" "$T/calls.out"
		cat >"$T/launch.sh" <<-END
			echo \$\$ >"$T/pid"
			exec "$V/calls" -t 2 $(pace "$where") >"$T/calls.out" 2>"$T/calls.err"
		END
		launch "$where" calls:victim_work 2us calls:victim_other 0 --for 150ms
		return
		;;
	forks)
		start calls "$V/forker" "$T/trouble"
		snapshot "$pid"
		run "$where" -p "$pid" :fork_work 2us --for 150ms
		return
		;;
	python-*)
		start calls "${python[0]}" "$SRC/test/victim/python/walked.py" "${way#*-}"
		snapshot "$pid" -t
		run "$where" -p "$pid" py:__main__:step 2us --for 150ms
		return
		;;
	confined)
		start calls "$V/confined" memory
		snapshot "$pid" -t
		run "$where" -p "$pid" :confined_fn 2us --for 150ms
		return
		;;
	exits)
		start calls "$V/exits" 1000000000
		snapshot "$pid" -t
		run "$where" -p "$pid" ':exit_*' 20us at=exit --for 100ms
		return
		;;
	times)
		start calls "$V/exits" 1000000000
		snapshot "$pid" -t
		run "$where" trace -p "$pid" ':exit_*' arg=x:1 ret sum=ret ':asm_*' --for 100ms --every 2 --stacks \
			-o "$T/walk.pftrace"
		return
		;;
	tiny)
		start calls "$V/tiny" 1000000000 / still
		snapshot "$pid" -t
		run "$where" -p "$pid" ':tiny_*' 0 time=yes --for 100ms
		return
		;;
	device)
		[ -e "$T/dev/nvidia-uvm" ] || { mkdir -p "$T/dev" && mknod "$T/dev/nvidia-uvm" c 1 3; } || skip 'no device can be made'
		start calls "$V/cuda" -t 2 -u 20000000 -c "$V/libcupti.so.12" -d "$T/dev/nvidia-uvm" "$V/libcuda.so.1"
		snapshot "$pid"
		run "$where" trace -p "$pid" cuda:launch --for 500ms --device-times -o "$T/walk.jsonl"
		return
		;;
	locked)
		cp "$V/locked" "$T/locked"
		start calls setpriv --reuid=65534 --regid=65534 --clear-groups "$T/locked" future
		# its own user lowers it: root may lack CAP_SYS_RESOURCE
		setpriv --reuid=65534 --regid=65534 --clear-groups prlimit --pid "$pid" \
			--memlock=$(($(sed -n 's/^VmLck:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status") * 1024 + 81920))
		snapshot "$pid"
		run "$where" -p "$pid" :locked_fn 2us 'libc.so.6:*' 0 --for 150ms
		return
		;;
	esac
	# shellcheck disable=SC2046 # words
	start calls "$V/calls" -t 2 $(pace "$where")
	snapshot "$pid" -t
	case $way in
	no-follow) run "$where" -p "$pid" "${hooks[@]}" --no-follow ;;
	int3) run "$where" -p "$pid" :victim_work 10us --for 150ms --mechanism int3 ;;
	*) run "$where" -p "$pid" "${hooks[@]}" --json "$T/run.json" ;;
	esac
}

# The command goes on behind --for, and where sbinject is killed: it is told to end, or the run
# would not. A command that never began has no pid.
launch() {
	local where=$1
	shift
	SBINJECT_FAULT=$where timeout 30 "$SB" "$@" -- sh "$T/launch.sh" \
		>"$T/sb.out" 2>"$T/sb.err" </dev/null &
	sb_pid=$!
	pid=''
	wait_for 3 test -s "$T/pid" && pid=$(cat "$T/pid") && pids+=("$pid")
	[ -z "$pid" ] || wait_for 5 said calls '^ready$'
	sleep 0.3
	[ -z "$pid" ] || settle_launch
	rc=0
	wait $sb_pid 2>/dev/null || rc=$?
}

# With the command line alive the end of the command is its own end: look at the command first.
settle_launch() {
	lives || return
	if kill -0 $sb_pid 2>/dev/null; then
		wait_for 10 clean || touch "$T/unclean"
		kill -TERM "$pid"
	fi
}

# An interpreter's heap grows and shrinks as it likes; its descriptors and signal masks do not.
python_unchanged() {
	let_go "$pid"
	"$TOOL/procstate" -t "$pid" >"$T/$pid.after" || fail 'it is gone'
	diff <(grep -v '^map' "$T/$pid.before") <(grep -v '^map' "$T/$pid.after") >"$T/$pid.diff" ||
		fail "it was changed: $(cat "$T/$pid.diff")"
}

# Anonymous mappings of the size of the agent's ring and more that are not a thread's stack or a heap.
rooms() {
	awk '$2 == "rw-p" && $5 == 0 && $6 == "" { split($1, a, "-"); print a[1], a[2] }' "/proc/$pid/maps" |
		while read -r from to; do
			size=$((16#$to - 16#$from))
			[ $size -lt $((4 << 20)) ] || [ $size -gt $((5 << 20)) ] || echo "$from $to"
		done | wc -l
}
# What the agent leaves: sbinject-cuda(7). CUPTI may have started a thread, and the C library keeps a stack.
device_unchanged() {
	clean || fail 'it is traced, or has a page of ours'
	! grep -E '^[^ ]+ ..x. [0-9]+ 00:00 0 *$' "/proc/$pid/maps" || fail 'it still maps code of nowhere'
	"$TOOL/procstate" "$pid" >"$T/$pid.after" || fail 'it is gone'
	diff <(grep -v '^map' "$T/$pid.before") <(grep -v '^map' "$T/$pid.after") >"$T/$pid.diff" ||
		fail "it was changed: $(cat "$T/$pid.diff")"
	[ "$(rooms)" = 0 ] || fail "the agent's memory stays mapped: $(cat "/proc/$pid/maps")"
}

same_as_before() {
	case $1 in
	launch) let_go "$pid" ;;
	forks | locked) unchanged "$pid" ;;
	python-*) python_unchanged ;;
	device) device_unchanged ;;
	*) unchanged "$pid" -t ;;
	esac
}

end_it() {
	local status=0

	case $1 in
	launch)
		kill -TERM "$pid" 2>/dev/null
		wait_for 10 said calls '^self-check ok$' || fail "the command went wrong"
		;;
	forks)
		finish calls "$pid"
		[ ! -s "$T/trouble" ] || fail "a child went wrong: $(cat "$T/trouble")"
		;;
	*) finish calls "$pid" ;;
	esac
	return $status
}

# one POINT N ACTION WAY, in a subshell: 0 reached and well, 3 never reached, 1 not well
one() {
	local where="$1:$2=$3" way=$4 pids=() status

	at_end cleanup
	rm -f "$T/unclean"
	set_off "$way" "$where"
	[ "$rc" -ne 124 ] || fail "$where: sbinject hangs"
	if [ "$3" = kill-target ]; then # only: sbinject ends, and says nothing untrue of it
		! lives || exit 3
		! grep -h 'another tool' "$T/sb.err" "$T/sb.out" || fail "$where: it had only ended"
		echo "$way: $where: status $rc"
		exit 0
	fi
	# A launch ends with the command's status: only what is said tells that something failed.
	if [ "$way" = launch ] && grep -qE 'tracer died|fault' "$T/sb.err"; then
		[ "$rc" -ne 0 ] || rc=1
	fi
	# Without device times a run is no failure.
	if [ "$way" = device ] && grep -q 'without device times' "$T/sb.err"; then
		[ "$rc" -ne 0 ] || rc=1
	fi
	if [ "$way" = launch ] && { [ -z "$pid" ] || ! lives; }; then
		[ ! -e "$T/unclean" ] || fail "$where: the command stayed hooked"
		[ -z "$pid" ] || said calls '^self-check ok$' || fail "$where: the command died"
		[ "$rc" -ne 0 ] || exit 3
		echo "$way: $where: status $rc"
		exit 0
	fi
	lives || fail "$where: the target died"
	wait_for 10 released || fail "$where: the target stays traced"
	if [ "$3" = kill-both ] && [ "$rc" -ne 0 ]; then
		status=$rc
		run '' recover -p "$pid"
		[ "$rc" -eq 0 ] || fail "$where: recover: status $rc"
		rc=$status
	else
		wait_for 10 clean || fail "$where: the target stays hooked"
	fi
	(same_as_before "$way") || fail "$where: the target was changed"
	end_it "$way"
	[ "$rc" -ne 0 ] || exit 3
	echo "$way: $where: status $rc, restored"
	exit 0
}

# passed WAY: how often each point is passed where nothing fails, in $passes. An Nth passage that no
# run comes to is not tried: three runs, since some are a matter of chance.
declare -A passes=() counted=()
passed() {
	local way=$1 name n

	[ -z "${counted[$way]:-}" ] || return 0
	counted[$way]=1
	for _ in 1 2 3; do
		rm -f "$T/passed"
		(SBINJECT_FAULT_LOG=$T/passed one none 1 error "$way") >/dev/null 2>&1
		[ -s "$T/passed" ] || fail "$way: no fault point is passed"
		while read -r n name; do
			[ "$n" -le "${passes[$way:$name]:-0}" ] || passes[$way:$name]=$n
		done < <(sed -n 's/^point //p' "$T/passed" | sort | uniq -c)
	done
}

walk_way() { # ACTION WAY: adds to $reached and $bad
	local point n status most

	passed "$2"
	for point in $(points); do
		most=${passes[$2:$point]:-0}
		for ((n = 1; n <= MOST && n <= most; n++)); do
			status=0
			(one "$point" $n "$1" "$2") || status=$?
			case $status in
			0) reached=$((reached + 1)) ;;
			3) break ;;
			*) bad=$((bad + 1)) wrong="$wrong $2:$point:$n=$1" ;;
			esac
		done
	done
}

walk() {
	local action=$1 way reached=0 bad=0 wrong=''
	shift

	[ -n "${POINTS:-}" ] || [ "$(points | wc -l)" -gt 5 ] || fail 'no fault points found'
	for way in "${@:-attach}"; do
		walk_way "$action" "$way"
	done
	[ $bad -eq 0 ] || fail "$bad passages of fault points went wrong:$wrong"
	more 'fault points reached' "$reached" "${LEAST:-5}"
}
