# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What every case begins with: . "$SRC/test/lib.sh". A case asserts three things: that its victim
# works before, that the effect is there during, that everything is as it was after.
#
# From the runner: SB the binary, V the victims, TOOL the helpers, T a directory of the case's own.
set -u
: "${SB:?run this by test/run}" "${V:?}" "${TOOL:?}" "${T:?}"
cd "$T" || exit 2

# shellcheck disable=SC2034 # cases use it
CTL=${SB%/*}/sbctl
export SBINJECT_RUNTIME_DIR="$T/run" # other cases have sessions too

pids=() # what was started here; what of it still runs is killed at the end
pid=''	# the last victim started
rc=0	# of the last sb

fail() {
	echo "FAIL: $*" >&2
	[ -s "$T/sb.err" ] && sed 's/^/  sbinject: /' "$T/sb.err" >&2
	exit 1
}

skip() {
	echo "skip: $*"
	exit 77
}

# The session of a process, in $session; false: it is gone. No fork.
session_of() { # PID
	local stat=

	# Up to the file's end: the program's name may have line ends.
	{ read -rd '' stat <"/proc/$1/stat"; } 2>/dev/null
	[ -n "$stat" ] || return 1
	# shellcheck disable=SC2086 # fields
	set -- ${stat##*) }
	session=$4
}

# The kernel gives the number of a process that has ended to another one, of any user. What is
# killed is of this case's session, or a job of this shell that has not ended.
cleanup() {
	local p session='' own jobs

	[ ${#pids[@]} -gt 0 ] || return 0
	session_of $$ && own=$session
	jobs=" $(jobs -pr | tr '\n' ' ')"
	for p in "${pids[@]}"; do
		session_of "$p" || continue
		[ "$session" = "${own:-none}" ] || [[ $jobs == *" $p "* ]] || continue
		kill -KILL "$p" 2>/dev/null
	done
}

# at_end COMMANDS: when this shell ends, in place of those before; its status stays. Not in its
# children: a signal that ends one before it has executed its program makes bash run the trap there.
at_end() {
	# shellcheck disable=SC2064,SC2154 # which shell this is; set in the trap
	trap "ended=\$?; [ \$BASHPID -ne $BASHPID ] || { $1; exit \$ended; }" EXIT
}
at_end cleanup

need() { # COMMAND...: skips the case where one of them is missing
	local c
	for c; do
		command -v "$c" >/dev/null 2>&1 || skip "$c is not installed"
	done
}
need_root() { [ "$(id -u)" -eq 0 ] || skip "needs root"; }

# rounds FEW MANY: how often to repeat what goes wrong seldom: MANY times in `make soak`
rounds() { if [ -n "${SOAK_SECONDS:-}" ]; then echo "$2"; else echo "$1"; fi; }

# nap SECONDS: without a process. What four tests side by side start to wait by is a good part of the
# processor time that others then lack.
mkfifo "$T.nap" 2>/dev/null # beside the case's own folder, which cases look at
nap() {
	if [ -p "$T.nap" ]; then
		read -rt "$1" <>"$T.nap" || : # a loop's status is that of what it did last
	else
		sleep "$1"
	fi
}

# wait_for SECONDS COMMAND...: until it succeeds; false when the time is over
wait_for() {
	local end=$((EPOCHSECONDS + $1 + 1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$EPOCHSECONDS" -lt $end ] || return 1
		nap 0.02
	done
}

# said NAME PATTERN: does a line of NAME.out match? A whole line in plain words takes no process.
said() {
	local lines line

	if [[ $2 != ^+([a-z0-9 -])\$ ]]; then
		grep -q -- "$2" "$T/$1.out" 2>/dev/null
		return
	fi
	{ mapfile -t lines <"$T/$1.out"; } 2>/dev/null || return
	for line in "${lines[@]}"; do
		[ "^$line\$" != "$2" ] || return 0
	done
	return 1
}

# start NAME COMMAND...: a victim; its streams are NAME.out and NAME.err, its pid is $pid
start() {
	local name=$1
	shift
	rm -f "$T/$name.out" # another victim's of that name said ready too
	"$@" >"$T/$name.out" 2>"$T/$name.err" </dev/null &
	pid=$!
	pids+=("$pid")
	wait_for 20 said "$name" '^ready$' || fail "$name did not start: $(cat "$T/$name.err")"
}

# finish NAME PID: ends a victim, which must find everything right
finish() {
	local status=0

	kill -TERM "$2" 2>/dev/null
	wait "$2" || status=$?
	[ $status -eq 0 ] && said "$1" '^self-check ok$' ||
		fail "$1 ended with status $status: $(tail -n 5 "$T/$1.out" "$T/$1.err")"
}

# calls NAME FUNCTION: how often the victim says that it called it
calls() { sed -n "s/^calls $2 //p" "$T/$1.out" | tail -n 1; }

# rate NAME: the mean of its rate lines of the last half second
rate() { sed -n 's/^rate //p' "$T/$1.out" | tail -n 5 | awk '{ s += $1; n++ } END { printf "%d", n ? s / n : 0 }'; }

# A thread that the C library has made and that has not begun blocks every signal, 32 and 33 too;
# no program can ask for that. On a busy machine it may stay so for long.
starting() { # PID
	grep -q '^SigBlk:	fffffffffffbfeff$' /proc/"$1"/task/*/status
}

# snapshot PID [-t]: before the attach; unchanged PID [-t]: after the detach
settled() { # PID [-t]: twice the same, and its threads are past their start
	"$TOOL/procstate" ${2+"$2"} "$1" >"$T/$1.first" && ! starting "$1" && sleep 0.03 &&
		"$TOOL/procstate" ${2+"$2"} "$1" >"$T/$1.before" && cmp -s "$T/$1.first" "$T/$1.before"
}
snapshot() {
	"$TOOL/textcheck" "$1" >"$T/$1.text" || fail "the text of $1 differs before: $(cat "$T/$1.text")"
	wait_for 10 settled "$@" || fail "no state of $1"
}

unchanged() {
	local text=0

	"$TOOL/textcheck" "$1" >"$T/$1.text" || text=$?
	[ $text -eq 0 ] || fail "the text of $1 differs from its files: $(cat "$T/$1.text")"
	"$TOOL/procstate" ${2+"$2"} "$1" >"$T/$1.after" || fail "$1 is gone"
	diff "$T/$1.before" "$T/$1.after" >"$T/$1.diff" || fail "$1 was changed: $(cat "$T/$1.diff")"
	grep -q '^status TracerPid:	0$' "$T/$1.after" || fail "$1 is still traced"
}

# let_go PID: as unchanged, for a target that itself changes its memory and files meanwhile
let_go() {
	"$TOOL/textcheck" "$1" >"$T/$1.text" || fail "the text of $1 differs: $(cat "$T/$1.text")"
	grep -q '^TracerPid:	0$' "/proc/$1/status" || fail "$1 is still traced"
	! grep 'memfd:sbinject' "/proc/$1/maps" || fail "$1 still maps sbinject's page"
	! grep -E '^[^ ]+ ..x. [0-9]+ 00:00 0 *$' "/proc/$1/maps" || fail "$1 still maps code of nowhere"
}

hooked() { ! "$TOOL/textcheck" "$1" >"$T/$1.hooked" 2>&1 && [ -s "$T/$1.hooked" ]; }

# No thread has a tracer. A session that does not follow lets go only some time after the first
# hook can be seen.
untraced() { ! grep -hs '^TracerPid:' "/proc/$1/task/"*/status | grep -qv '	0$'; }
await_untraced() { wait_for "${2:-10}" untraced "$1" || fail "$1 is still traced"; }

# free_port: one on loopback, below those that the kernel hands out to clients: a port of that
# range may be in use before the server binds it.
free_port() {
	local port

	for _ in 1 2 3 4 5 6 7 8 9 10; do
		port=$((10000 + (RANDOM << 15 | RANDOM) % 22000)) # a subshell has numbers of its own
		(: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo "$port"
}

# sb ARGS...: runs sbinject to its end, which comes within $sb_limit seconds; streams in sb.out and
# sb.err, status in $rc
sb() {
	rc=0
	timeout "${sb_limit:-50}" "$SB" "$@" >"$T/sb.out" 2>"$T/sb.err" </dev/null || rc=$?
}

# sb_start ARGS...: in the background, as $sb_pid; sb_wait: its end
sb_start() {
	rm -f "$T/sb.out" "$T/sb.err" # what an earlier one said is not its
	# Appended: one that runs beside it and says its own there is not overwritten.
	# A shell's background jobs ignore SIGINT; at a prompt it would not be so.
	env --default-signal=INT,QUIT "$SB" "$@" >>"$T/sb.out" 2>>"$T/sb.err" </dev/null &
	sb_pid=$!
	pids+=("$sb_pid")
}
sb_wait() {
	rc=0
	wait "$sb_pid" || rc=$?
}
# sb_stop [SIGNAL]
sb_stop() {
	kill "-${1:-INT}" "$sb_pid" 2>/dev/null
	sb_wait
}

# attach PID ARGS...: sb_start -p PID, and until the hooks are in
attach() {
	local target=$1
	shift
	sb_start -p "$target" "$@" --json "$T/run.json"
	wait_for 20 hooked "$target" || fail "no hook was planted in $target"
}

# until sbctl can reach the session that was started
await_session() {
	wait_for 10 compgen -G "$SBINJECT_RUNTIME_DIR/*.sock" || fail 'no socket'
}

j() { "$TOOL/jget" "$T/run.json" "$1"; } # a value of the last run's JSON

ended() { [ "$rc" -eq "$1" ] || fail "exit status $rc, not $1${2:+ ($2)}"; }
told() { grep -qi -- "$1" "$T/sb.err" || fail "stderr does not say '$1'"; }
same() { [ "$2" = "$3" ] || fail "$1: '$2', not '$3'"; }
more() { [ "$2" -gt "$3" ] || fail "$1: $2, not more than $3"; }
less() { [ "$2" -lt "$3" ] || fail "$1: $2, not less than $3"; }

# refuses STATUS PATTERN ARGS...: an error that names PATTERN, in at most three lines
refuses() {
	local status=$1 pattern=$2
	shift 2
	sb "$@"
	[ "$rc" -eq "$status" ] || fail "sbinject $*: exit status $rc, not $status"
	grep -qiE -- "$pattern" "$T/sb.err" || fail "sbinject $*: its error does not say '$pattern'"
	[ "$(wc -l <"$T/sb.err")" -le 3 ] || fail "sbinject $*: its error is long"
}

# pythons: every CPython from 3.10 on that is here, one a line; PYTHONS names more
pythons() {
	local p
	if [ -n "${PYTHONS_HERE:-}" ]; then # the runner has asked them
		echo "$PYTHONS_HERE"
		return
	fi
	for p in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.[1-9][0-9]*/bin/python3 /usr/bin/python3 \
		/usr/local/bin/python3 ${PYTHONS:-}; do
		[ -x "$p" ] && "$p" -c 'import sys
sys.exit(sys.version_info < (3, 10) or sys.implementation.name != "cpython")' 2>/dev/null &&
			echo "$p"
	done
}

# versions: the first of each version, for a case that is long and about the interpreter's own code,
# which another build of the version has, too
versions() {
	local p version seen=' '

	while read -r p; do
		version=$(readlink -f "$p")
		version=${version##*/}
		[[ $seen == *" $version "* ]] || echo "$p"
		seen+="$version "
	done < <(pythons)
}

# need_python [versions]: skips the case without the agent or without an interpreter; else they are
# ${python[@]}
need_python() {
	[ -s "$BUILD/python/agent.so.stripped" ] || skip 'sbinject is built without Python targets'
	export PYTHONDONTWRITEBYTECODE=1 # nothing into the tree
	mapfile -t python < <("${1:-pythons}")
	[ ${#python[@]} -gt 0 ] || skip 'there is no CPython 3.10 or later'
}

# own_victims: copies of the victims for this case alone. A uprobe is put into a file, and shows in all
# processes that run it: those of another case beside it, too.
own_victims() {
	cp -r "$V" "$T/victim"
	V=$T/victim
}

# need_uprobe: skips the case where the uprobe backend is not built in or the machine forbids it; the victims are
# copies from then on
need_uprobe() {
	own_victims
	"$SB" --backend uprobe -a "$V/calls:victim_work" 0 --for 1ms >"$T/uprobe" 2>&1 ||
		skip "$(sed -n 's/^sbinject: //p;q' "$T/uprobe")"
}

# attach_told PID ARGS...: as attach, and until sbinject itself says that all is in force
attach_told() {
	local target=$1
	shift
	rm -f "$T/told"
	sb_start -p "$target" "$@" --json "$T/run.json" --status-fd 9 9>"$T/told"
	wait_for 20 grep -q '^attached' "$T/told" || fail "no attach to $target"
}
