#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A reader that stalls, a stopped command line: the target runs on.
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -r
target=$pid
snapshot "$target"
mkfifo "$T/pipe"
# shellcheck disable=SC2217 # a reader that does not read
sleep 30 <"$T/pipe" & # opens it and never reads
reader=$!
env --default-signal=INT "$SB" -p "$target" :victim_work 5us --interval 1ms -v >"$T/pipe" 2>&1 &
sb_pid=$!
pids+=("$reader" "$sb_pid")
wait_for 10 hooked "$target" || fail 'not hooked'
sleep 1.5
more 'calls a second with a stalled reader' "$(rate calls)" 1000
kill -STOP "$sb_pid"
sleep 1
more 'calls a second with a stopped command line' "$(rate calls)" 1000
kill -CONT "$sb_pid"
kill -KILL "$reader"
kill -INT "$sb_pid" 2>/dev/null
wait "$sb_pid"
unchanged "$target"
finish calls "$target"
