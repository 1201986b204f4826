#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two users on one machine: a session is its user's and root's, also where others know its place; what
# another user has put where a session would listen or write is not used.
# quick
# beside others
. "$SRC/test/lib.sh"
need_root
need setpriv python3
[ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" -eq 0 ] || skip 'yama.ptrace_scope'

unset SBINJECT_RUNTIME_DIR XDG_RUNTIME_DIR # where users have none
one=$((100000 + $$ % 100000 * 2)) two=$((100001 + $$ % 100000 * 2))
at_end 'cleanup; rm -rf "/tmp/sbinject-$one" "/tmp/sbinject-$two"'
as() { setpriv "--reuid=$1" "--regid=$1" --clear-groups "${@:2}"; }
mkdir "$T/one" "$T/two"
chown "$one" "$T/one" && chown "$two" "$T/two"
cp "$SB" "$CTL" "$V/calls" "$V/victim-lib.so" "$T/"
chmod 755 "$T/sbinject" "$T/sbctl" "$T/calls" "$T/victim-lib.so"

ctl() { as "$1" "$T/sbctl" "${@:2}" >"$T/ctl.out" 2>"$T/ctl.err"; }
says() { # UID PATTERN ARGS...
	ctl "$1" "${@:3}" || fail "sbctl ${*:3} by $1: $(cat "$T/ctl.err")"
	grep -q -- "$2" "$T/ctl.out" || fail "sbctl ${*:3} by $1: $(cat "$T/ctl.out"), not $2"
}
no() { # UID STATUS PATTERN ARGS...
	local status=0
	ctl "$1" "${@:4}" || status=$?
	same "status of sbctl ${*:4} by $1" "$status" "$2"
	grep -q -- "$3" "$T/ctl.err" || fail "sbctl ${*:4} by $1: $(cat "$T/ctl.err"), not $3"
}

# A user's own session on its own process, from end to end.
start calls setpriv "--reuid=$one" "--regid=$one" --clear-groups "$T/calls"
snapshot "$pid"
as "$one" "$T/sbinject" -p "$pid" :victim_work 1us --daemon 2>"$T/sb.err" || fail "--daemon: $?"
ctl "$one" sessions
session=$(sed -n 's/^\([0-9]*\) .*/\1/p' "$T/ctl.out")
dir=/tmp/sbinject-$one
[ -S "$dir/$session.sock" ] || fail "no socket: $(ls -la "$dir")"
same 'the directory' "$(stat -c '%u %a' "$dir")" "$one 700"
same 'the socket' "$(stat -c '%u %a' "$dir/$session.sock")" "$one 700"
says "$one" '^Updated' update :victim_work 2us
says "$one" '^Added' add :victim_idle 3us

# Another one: by no name and by no place.
no "$two" 0 'no session is running' sessions
no "$two" 1 'no session is running' list
no "$two" 1 '^sbctl: EPERM: .*another user' -s "$session" status
no "$two" 1 '^sbctl: EPERM: .*another user' -s "$pid" disable
export SBINJECT_RUNTIME_DIR=$dir
for verb in sessions list status disable clear stop; do
	no "$two" 1 '^sbctl: EPERM: .*another user' $verb
done
chmod 711 "$dir" && chmod 666 "$dir/$session.sock" # a user who gets past the modes
python3 - "$dir/$session.sock" "$two" <<'P' || fail 'not told why'
import json, os, socket, sys
os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
answer = json.loads(s.makefile().readline())
assert answer["ok"] is False and answer["error"] == "EPERM", answer
assert s.recv(1) == b""
P
chmod 700 "$dir"

# Root: by the directory, by the session's number, by the process.
says 0 "^$session " sessions
says 0 '^:victim_work delay_ns=2000 ' list
unset SBINJECT_RUNTIME_DIR
says 0 '^enabled: 1' -s "$session" status
says 0 '^Updated' -s "$pid" update :victim_work 4us
says "$one" '^:victim_work delay_ns=4000 ' list
says "$one" '^:victim_work' stop
wait_for 10 test ! -e "/proc/$session" || fail 'the session did not end'
unchanged "$pid"

# A directory that is another's, a link, open to others, too long: the session runs all the same.
ln -s "$T/one" "$T/link"
chown -h "$one" "$T/link"
mkdir -m 755 "$T/one/open"
chown "$one" "$T/one/open"
for dir in "$T/two" "$T/link" "$T/one/open" "$T/nowhere/at/all" "$T/one/$(printf '%0100d' 0)"; do
	SBINJECT_RUNTIME_DIR=$dir as "$one" "$T/sbinject" -p "$pid" :victim_work 0 --for 50ms \
		2>"$T/sb.err" || fail "in $dir: $?"
	told 'sbctl cannot reach this session'
	same "files in $dir" "$(find "$dir/" -type s 2>/dev/null | wc -l)" 0
done
[ -z "$(ls "$T/two")" ] || fail 'something is in the directory of the other'
unchanged "$pid"

# XDG_RUNTIME_DIR counts where it is this user's own: su leaves that of another behind.
for xdg in "$T/two" "$T/one"; do
	export XDG_RUNTIME_DIR=$xdg
	as "$one" "$T/sbinject" -p "$pid" :victim_work 0 --daemon 2>"$T/sb.err" || fail "--daemon: $?"
	where=/tmp/sbinject-$one
	[ "$xdg" = "$T/two" ] || where=$xdg/sbinject
	same "sockets in $where" "$(find "$where" -type s | wc -l)" 1
	says "$one" ':victim_work' stop
done
unset XDG_RUNTIME_DIR

# A dead session of another user does no harm in the directory; files are not written through links.
export SBINJECT_RUNTIME_DIR=/tmp/sbinject-$one
echo precious >"$T/precious" && chmod 666 "$T/precious"
rm -f "$T/told"
# shellcheck disable=SC2016
python3 -c 'import os, socket, sys
os.chdir(sys.argv[1])
socket.socket(socket.AF_UNIX).bind("%d.sock" % os.getpid())
for name in "%d.tmp", "%d-0.tmp":
    os.symlink(sys.argv[3] + "/precious", sys.argv[3] + "/two/m.prom." + name % os.getpid())
os.chmod(sys.argv[3] + "/two", 0o777)
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
os.execv(sys.argv[3] + "/sbinject", ["sbinject"] + sys.argv[4:])' "$SBINJECT_RUNTIME_DIR" "$one" "$T" \
	-p "$pid" :victim_work 0 --metrics-file "$T/two/m.prom" --interval 50ms --status-fd 9 \
	9>"$T/told" 2>"$T/sb.err" >"$T/sb.out" </dev/null &
sb_pid=$!
pids+=("$sb_pid")
wait_for 20 grep -q '^attached' "$T/told" || fail "no attach: $(cat "$T/sb.err")"
says "$one" '^enabled: 1' -s "$sb_pid" status
wait_for 10 grep -q '^# EOF$' "$T/two/m.prom" || fail 'no metrics'
same 'what the links led to' "$(cat "$T/precious")" precious
same 'whose the metrics are' "$(stat -c %u "$T/two/m.prom")" "$one"
sb_stop
ended 0
unchanged "$pid"
finish calls "$pid"
