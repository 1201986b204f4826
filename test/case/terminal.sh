#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The terminal goes away: a clean detach. Ctrl-C in launch mode reaches the command.
# quick
# beside others
. "$SRC/test/lib.sh"

need script mkfifo
script -qec true /dev/null </dev/null >/dev/null 2>&1 || skip "no pseudo-terminal here"
start calls "$V/calls" -t 2
target=$pid
snapshot "$target" -t
mkfifo "$T/keys"
sleep 100 >"$T/keys" & # keeps it open
pids+=("$!")
env --default-signal=INT,QUIT script -qfc "$SB -p $target :victim_work 2us --json $T/run.json" /dev/null <"$T/keys" >"$T/typescript" 2>&1 &
terminal=$!
pids+=("$terminal")
wait_for 15 hooked "$target" || fail "not hooked: $(cat "$T/typescript")"
kill -KILL "$terminal"
clean() { "$TOOL/textcheck" "$target" && grep -q '^TracerPid:	0$' "/proc/$target/status"; }
wait_for 10 clean || fail 'the target stays hooked without a terminal'
unchanged "$target" -t
wait_for 10 j targets.0.hits || fail 'no JSON was written'
more hits "$(j targets.0.hits)" 100
finish calls "$target"

rm "$T/run.json"
env --default-signal=INT,QUIT script -qefc "$SB :victim_work 1us --json $T/run.json -- $V/calls -r" /dev/null <"$T/keys" >"$T/typescript" 2>&1 &
terminal=$!
pids+=("$terminal")
wait_for 10 grep -q rate "$T/typescript" || fail "the command does not run: $(cat "$T/typescript")"
sleep 0.3
printf '\003' >"$T/keys"
status=0
wait "$terminal" || status=$?
same 'status after Ctrl-C' "$status" 130
more 'hits before Ctrl-C' "$(j targets.0.hits)" 1000
grep -q victim_work "$T/typescript" || fail 'no summary'
