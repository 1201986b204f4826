#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 120 s
# A program with file capabilities, for a group: its users trace processes of others, and read, write
# and execute nothing beyond their own rights. It holds a capability around single calls only.
. "$SRC/test/lib.sh"
need_root
need setpriv setcap

chmod 755 "$T" && mkdir -m 755 "$T/bin" && mkdir -m 700 "$T/closed" && mkdir -m 777 "$T/theirs"
mkdir -m 700 "$T/run" && chown 65534:65534 "$T/run"
touch "$T"/sb.{out,err} && chmod 666 "$T"/sb.{out,err}
cp "$SB" "$T/bin/sbinject"
chgrp 65534 "$T/bin/sbinject" && chmod 750 "$T/bin/sbinject"
give() { setcap "$1" "$T/bin/sbinject" 2>/dev/null || skip 'this file system has no file capabilities'; }
give cap_sys_ptrace,cap_dac_override,cap_checkpoint_restore=p
# By another program: setpriv itself still has capabilities when it executes one.
as() { # UID ARG...
	local uid=$1
	shift
	setpriv --reuid="$uid" --regid="$uid" --clear-groups env "$@"
}
member() { as 65534 "$@"; }
rc=0
as 12345 "$T/bin/sbinject" --version >"$T/sb.out" 2>&1 || rc=$?
[ "$rc" -eq 126 ] || [ "$rc" -eq 127 ] || fail "another user starts it: $rc"

# A process of root's: what an ordinary user may not touch.
start calls "$V/calls" -r
snapshot "$pid"
rc=0
cp "$SB" "$T/bin/plain"
member "$T/bin/plain" -p "$pid" :victim_work 0 --for 10ms >"$T/sb.out" 2>"$T/sb.err" || rc=$?
ended 4
member "$T/bin/sbinject" -p "$pid" :victim_work 1us --for 30s --json "$T/theirs/run.json" \
	>"$T/sb.out" 2>"$T/sb.err" &
sb_pid=$!
pids+=("$sb_pid")
wait_for 20 hooked "$pid" || fail 'no hook was planted'
tracer=$(awk '/^TracerPid/ { print $2 }' "/proc/$pid/status")
client=$(awk '/^PPid/ { print $2 }' "/proc/$tracer/status") held=0
for _ in {1..200}; do
	held=$((held + $(cat /proc/"$tracer"/task/*/status /proc/"$client"/task/*/status 2>/dev/null |
		grep -c '^CapEff:.*[1-9a-f]')))
done
less 'samples with a capability' "$held" 20
for reader in $(grep -lsE "^PPid:	$tracer\$" /proc/[0-9]*/status); do
	[ "$(grep -c '^Cap\(Prm\|Eff\):.*0000000000000000' "$reader")" -eq 2 ] || fail "$reader has capabilities"
done
kill -INT "$client"
rc=0
wait "$sb_pid" || rc=$?
ended 0
more hits "$(grep -o '"hits": *[0-9]*' "$T/theirs/run.json" | head -n 1 | grep -o '[0-9]*$')" 0
same 'owner of the result' "$(stat -c %u "$T/theirs/run.json")" 65534
unchanged "$pid"

# What only root may read, write, make, or enter.
echo ':secret_fn 1us' >"$T/closed/secret" && chmod 644 "$T/closed/secret"
asks() {
	rc=0
	member "SBINJECT_RUNTIME_DIR=$T/run" timeout 30 "$T/bin/sbinject" "$@" >"$T/sb.out" 2>"$T/sb.err" || rc=$?
	[ "$rc" -ne 0 ] || fail "sbinject $* went on"
	! grep -q secret_fn "$T/sb.out" "$T/sb.err" || fail "sbinject $* shows it"
	told "${want:-Permission denied}"
}
asks list -p "$pid" --targets "$T/closed/secret"
for option in --json --jsonl --events --metrics-file; do
	asks -p "$pid" :victim_work 0 --for 10ms "$option" "$T/closed/new"
done
asks list -p "$pid" --targets "/proc/$pid/root$T/closed/secret"
member "SBINJECT_RUNTIME_DIR=$T/closed/run" "$T/bin/sbinject" -p "$pid" :victim_work 0 --for 10ms >"$T/sb.out" 2>"$T/sb.err"
told "cannot make $T/closed/run: Permission denied"
same 'what is in a directory of root' "$(ls "$T/closed")" secret
# What it starts has none.
member "$T/bin/sbinject" :nothing 0 -- grep '^Cap[PEI]' /proc/self/status >"$T/sb.out" 2>"$T/sb.err"
[ "$(grep -c '^Cap.*0000000000000000$' "$T/sb.out")" -eq 3 ] || fail "a command has: $(cat "$T/sb.out" "$T/sb.err")"

# Any other capability is refused, and none of its users' is lost.
give cap_sys_ptrace,cap_chown=ep
want='privileges that its user does not have' asks -p "$pid" :victim_work 0 --for 10ms
unchanged "$pid"
finish calls "$pid"
