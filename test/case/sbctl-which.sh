#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Several sessions of one user: sbctl does not guess which one is meant; a dead one does no harm, and
# the numbers of another pid namespace are not taken for ours.
# quick
# beside others
. "$SRC/test/lib.sh"
need python3

ctl() { "$CTL" "$@" >"$T/ctl.out" 2>"$T/ctl.err"; }
no() { # STATUS PATTERN ARGS...
	local status=0
	ctl "${@:3}" || status=$?
	same "status of sbctl ${*:3}" "$status" "$1"
	grep -q -- "$2" "$T/ctl.err" || fail "sbctl ${*:3}: $(cat "$T/ctl.err"), not $2"
}
delays() { # DELAY ARGS...: of the one target
	ctl "${@:2}" list || fail "sbctl ${*:2} list: $(cat "$T/ctl.err")"
	same "sbctl ${*:2} list" "$(sed 's/ hits=.*//' "$T/ctl.out")" ":victim_work delay_ns=$1"
}
background() { # NAME DELAY: a victim ($pid) and its session ($session)
	start "$1" "$V/calls"
	sb -p "$pid" :victim_work "$2" --daemon
	ended 0
	session=$(sed -n 's/.*kill \([0-9]*\) detaches.*/\1/p' "$T/sb.err")
	[ -n "$session" ] || fail "no session: $(cat "$T/sb.err")"
}

background one 1us
one=$pid first=$session
delays 1000
background two 2us
two=$pid second=$session
ctl sessions && same 'sessions' "$(wc -l <"$T/ctl.out")" 2
no 2 '2 sessions are running' list
no 2 '2 sessions are running' stop
delays 1000 -s "$first"
delays 2000 -s "$second"
delays 1000 -s "$one"
delays 2000 --session "$two"
no 1 'no session has the number' -s 1 status
for bad in 0 -1 x '' 12x 4294967297 99999999999999999999; do
	no 2 'takes a session' -s "$bad" status
done

# Two of one name need --pid, one alone does not: as scripts for the kernel module have it.
ctl -s "$first" add :victim_idle 5 "--pid=$one" && ctl -s "$first" add :victim_idle 6 "--pid=$two" || fail add
no 1 '^sbctl: EINVAL: .*several' -s "$first" update :victim_idle 7
printf 'update :victim_idle 8 --pid=%d\nremove :victim_idle --pid=%d\n' "$one" "$two" >"$T/lines"
ctl -s "$first" - <"$T/lines" || fail "lines with --pid: $(cat "$T/ctl.err")"
ctl -s "$first" list && grep -q "^:victim_idle delay_ns=8 .* pid=$one\$" "$T/ctl.out" || fail 'the line of one'
ctl -s "$first" update :victim_idle 7 || fail "update: $(cat "$T/ctl.err")"
ctl -s "$first" list && grep -q "^:victim_idle delay_ns=7 hits=[0-9]* pid=$one\$" "$T/ctl.out" ||
	fail "list: $(cat "$T/ctl.out")"
no 1 '^sbctl: ENOENT' -s "$first" remove :victim_idle "--pid=$two"
ctl -s "$first" remove :victim_idle || fail 'remove'

# One that was killed leaves one: it is the one that is meant.
tracer=$(sed -n 's/^TracerPid:	//p' "/proc/$two/status")
kill -KILL "$second" "$tracer"
gone() { ctl sessions; [ "$(wc -l <"$T/ctl.out")" = 1 ]; }
wait_for 10 gone || fail 'the dead one is listed'
delays 1000
sb recover -p "$two"
ended 0
finish two "$two"

# A container that shares the directory: what it calls a process number is none of ours.
if [ "$(id -u)" -eq 0 ] && command -v unshare >/dev/null; then
	mkfifo "$T/hold"
	# shellcheck disable=SC2016
	SB=$SB V=$V T=$T unshare --pid --fork --mount-proc bash -c '
		"$V/calls" >"$T/inner.out" & pid=$!
		until grep -q "^ready$" "$T/inner.out"; do sleep 0.05; done
		"$SB" -p $pid :victim_work 3us --daemon 2>"$T/inner.err" || exit 1
		echo $pid >"$T/inner.pid"
		read -r _ <"$T/hold"
		kill -TERM $pid; wait $pid' &
	holder=$!
	wait_for 20 test -s "$T/inner.pid" || fail "no session in a namespace: $(cat "$T/inner.err")"
	inner=$(cat "$T/inner.pid")
	ctl sessions && same sessions "$(wc -l <"$T/ctl.out")" 2
	grep -q 'another pid namespace' "$T/ctl.out" || fail "nothing tells them apart: $(cat "$T/ctl.out")"
	no 1 'no session has the number' -s "$inner" disable
	delays 1000 -s "$one"
	echo >"$T/hold"
	wait "$holder" || fail 'the one in the namespace was hurt'
	wait_for 10 gone || fail 'the session in the namespace is still there'
fi

ctl -s "$first" stop || fail "stop: $(cat "$T/ctl.err")"
wait_for 10 test ! -e "/proc/$first" || fail 'the session did not end'

# A living one that has the number already is not put aside.
python3 -c 'import os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
name = sys.argv[1] + "/%d.sock" % os.getpid()
s.bind(name)
s.listen()
if os.fork() == 0:
    while not os.path.exists(sys.argv[2] + "/done"):
        time.sleep(0.05)
    os._exit(not os.path.exists(name) or len(os.listdir(sys.argv[1])) != 1)
os.execv(sys.argv[3], sys.argv[3:])' "$SBINJECT_RUNTIME_DIR" "$T" "$SB" -p "$one" :victim_idle 0 --for 50ms \
	>"$T/sb.out" 2>"$T/sb.err" </dev/null || fail "without a socket: $?"
told 'another pid namespace' || fail 'a socket in use was taken'
same sockets "$(find "$SBINJECT_RUNTIME_DIR" -type s | wc -l)" 1
touch "$T/done"
let_go "$one"
finish one "$one"
