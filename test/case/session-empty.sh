#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A session without a target touches nothing until sbctl fills it: launched, or on a live process.
# quick
# beside others
. "$SRC/test/lib.sh"

listed() { "$CTL" sessions 2>/dev/null | grep -q "^$1 "; }

start calls "$V/calls"
snapshot "$pid"
sb -p "$pid" --daemon
ended 0
session=$("$CTL" sessions | sed -n 's/^\([0-9]*\) .*/\1/p')
[ -n "$session" ] || fail "no session: $(cat "$T/sb.err")"
"$TOOL/textcheck" "$pid" >/dev/null || fail 'an empty session changed the text'
"$CTL" add :victim_work 1us >/dev/null || fail 'add'
hooked "$pid" || fail 'not hooked'
"$CTL" stop | grep -q ':victim_work' || fail 'no summary'
wait_for 10 test ! -e "/proc/$session" || fail 'the session did not end'
unchanged "$pid"
finish calls "$pid"

env --default-signal=INT,QUIT "$SB" -- "$V/calls" -n 0 >"$T/run.out" 2>"$T/run.err" </dev/null &
sb_pid=$!
pids+=("$sb_pid")
wait_for 20 said run '^ready$' || fail "not launched: $(cat "$T/run.err")"
wait_for 10 listed "$sb_pid" || fail 'a launched command without a target leaves no session'
"$CTL" add :victim_work 0 >/dev/null || fail 'add to a launched one'
sleep 0.3
"$CTL" list | grep -q 'hits=[1-9]' || fail "no hits: $("$CTL" list)"
command=$("$CTL" --json status | tr -d ' \n' | sed 's/.*"pids":\[\([0-9]*\).*/\1/')
kill -TERM "$command"
rc=0
wait "$sb_pid" || rc=$?
ended 0 "$(cat "$T/run.err")"
said run '^self-check ok$' || fail 'the command was hurt'
