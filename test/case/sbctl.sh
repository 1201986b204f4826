#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A session is changed while it runs: targets come and go, delays and counting are switched, and the
# target is what it was afterwards. The forms are those that scripts know.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"

ctl() { "$CTL" "$@" >"$T/ctl.out" 2>"$T/ctl.err"; }
says() { ctl "${@:2}" || fail "sbctl ${*:2}: $(cat "$T/ctl.err")"; same "sbctl ${*:2}" "$(cat "$T/ctl.out")" "$1"; }
no() { # ERROR STATUS ARGS...
	local error=$1 want=$2 status=0
	shift 2
	ctl "$@" || status=$?
	same "status of sbctl $*" "$status" "$want"
	grep -q "^sbctl: $error" "$T/ctl.err" || fail "sbctl $*: not $error: $(cat "$T/ctl.err")"
}
hits_of() { ctl list && sed -n "s/^$1 .*hits=\\([0-9]*\\).*/\\1/p" "$T/ctl.out"; }
grows() { # TARGET
	local was now
	was=$(hits_of "$1")
	sleep 0.3
	now=$(hits_of "$1")
	[ "${now:-0}" -gt "${was:-0}" ]
}

! ctl list || fail 'sbctl list without a session'
grep -q 'no session is running' "$T/ctl.err" || fail "$(cat "$T/ctl.err")"

start calls "$V/calls" -r
snapshot "$pid"
attach "$pid" :victim_work 0
await_session
wait_for 10 grows :victim_work || fail 'it does not count'
says 'Updated target: :victim_work delay=2000 ns' update :victim_work 2000
# A bare number is in ns, where sbinject demands a unit: what was taken is said.
grep -q '^sbctl: delay_ns=2000: .*nanoseconds' "$T/ctl.err" || fail "no unit in the answer: $(cat "$T/ctl.err")"
says 'Updated target: :victim_work delay=3000 ns' update :victim_work 3us
same 'what is said of a delay with a unit' "$(cat "$T/ctl.err")" ''
ctl list && grep -q '^:victim_work delay_ns=3000 hits=[0-9]*$' "$T/ctl.out" || fail "list: $(cat "$T/ctl.out")"
says 'Probes disabled' disable
was=$(hits_of :victim_work)
sleep 0.3
same 'hits while disabled' "$(hits_of :victim_work)" "$was"
says 'Probes enabled' enable
wait_for 10 grows :victim_work || fail 'it does not count again'
says 'Default delay set to 7000 ns' delay 7000
says 7000 delay
says "Added target: :victim_idle" add :victim_idle
ctl list && grep -q '^:victim_idle delay_ns=7000 ' "$T/ctl.out" || fail "no default delay: $(cat "$T/ctl.out")"
says 'Removed target: :victim_work' remove :victim_work
# What comes again has the keys that it comes with now.
says 'Added target: :victim_work' add :victim_work 1000 thread=nobody-has-this-name
! wait_for 1 grows :victim_work || fail 'it counts threads that were not meant'
says 'Removed target: :victim_work' remove :victim_work
says 'Added target: :victim_work' add :victim_work 1000
wait_for 10 grows :victim_work || fail 'it does not count after it was added again'
ctl status && grep -q '^enabled: 1$' "$T/ctl.out" && grep -q '^targets: 2$' "$T/ctl.out" &&
	grep -q '^total_hits: [1-9]' "$T/ctl.out" && grep -q '^total_delay_ns: ' "$T/ctl.out" ||
	fail "status: $(cat "$T/ctl.out")"

# Names of errors, and their status.
no ENOENT 1 add :no_such_function 5
no EEXIST 1 add :victim_work 5
no EEXIST 1 add :victim_work 5 --pid="$pid" # its place is taken
no ERANGE 1 add :victim_idle2 20s
no ERANGE 1 update :victim_work 10000000001
no ERANGE 1 update :victim_work "$(printf '9%.0s' {1..80})"
no ERANGE 1 delay 99999999999999999999s
no EINVAL 1 update :victim_work -5
no EINVAL 1 delay -1
no EINVAL 1 delay ''
no EINVAL 1 add nonsense 5
no EINVAL 1 add :victim_work5 5parsecs
no ENOENT 1 add /nowhere/at/all:f 5
no ENOEXEC 1 add /etc/passwd:f 5
! grep -q report "$T/ctl.err" || fail "a wrong remedy: $(cat "$T/ctl.err")"
no ENAMETOOLONG 1 add "/$(printf '%0260d' 0):f" 5
no ENAMETOOLONG 1 add "/usr$(printf '/%0100d' 1 2 3):f" 5
says "Added target: /*$(printf '%0260d' 0):f" add "/*$(printf '%0260d' 0):f" 5
says "Removed target: /*$(printf '%0260d' 0):f" remove "/*$(printf '%0260d' 0):f"
no ENAMETOOLONG 1 add ":$(printf '%05000d' 0)" 5
no ENOENT 1 update :no_such_target 5
no ENOENT 1 remove :no_such_target
no '' 2 frobnicate
no '' 2 add
same sessions "$("$CTL" sessions | grep -c "^$sb_pid ")" 1
"$CTL" -s "$sb_pid" status >/dev/null || fail 'by the number of the session'
"$CTL" -s "$pid" status >/dev/null || fail 'by a process that it has hooked'
! "$CTL" -s 1 status >/dev/null 2>&1 || fail 'a session of process 1?'
ctl --json list && same 'a target in JSON' "$("$TOOL/jget" "$T/ctl.out" targets.0.target)" :victim_work

# Ten thousand changes through one connection.
for i in $(seq 10000); do echo "update :victim_work $i"; done | "$CTL" - >"$T/many" || fail 'a batch'
same 'answers to a batch' "$(wc -l <"$T/many")" 10000

for i in $(seq 600); do echo "add later$i.so:f 5"; done | "$CTL" - >"$T/many" 2>"$T/ctl.err" && fail 'no end of room'
grep -q '^sbctl: ENOSPC' "$T/ctl.err" || fail "a full session: $(cat "$T/ctl.err")"
more 'targets in a session' "$(wc -l <"$T/many")" 500

says 'All targets cleared' clear
"$CTL" stop >"$T/stop.out" 2>&1 || fail "stop: $(cat "$T/stop.out")"
grep -q ':victim_work' "$T/stop.out" || fail "no summary: $(cat "$T/stop.out")"
sb_wait
ended 0
# Of a delay that was changed there is no one figure that was given.
grep -q 'its delay was changed' "$T/run.json" || fail 'figures of a mixture of delays'
unchanged "$pid"
finish calls "$pid"
[ -z "$(ls "$SBINJECT_RUNTIME_DIR")" ] || fail 'a socket is left'
