#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The thread that is lent to load the device agent waits in the dynamic linker, where another thread loads a library for
# long. The tracer is killed, or both are, or the session ends: what that thread returns into stays, the program goes on,
# and nothing is left afterwards.
# limit: 120 s
# beside idle work, two at a time
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"
mkdir "$T/dev"
mknod "$T/dev/nvidia-uvm" c 1 3 || skip 'no device can be made'
: <>"$T/dev/nvidia-uvm" || skip 'devices cannot be opened here'

# Threads that wait for a lock of the C library, or as if for one: the one that loads, and the lent one behind it.
waiting() { cat "/proc/$pid/task/"*/syscall 2>/dev/null | grep -c '^202 0x[0-9a-f]* 0x80 0x2 '; }
loads() { [ "$(waiting)" = 1 ]; }
is_lent() { [ "$(waiting)" = 2 ]; }
rooms() { awk '/^[^ ]+ r-xp 00000000 00:00 0 *$/' "/proc/$pid/maps" | wc -l; }
begin() { # NAME: a program, and a session whose lent thread waits
	start gpu "$V/cuda" -t 2 -u 20000000 -c "$V/libcupti.so.12" -d "$T/dev/nvidia-uvm" \
		-l "$V/victim-slow-load.so" "$V/libcuda.so.1"
	wait_for 20 loads || fail "$1: it loads no library"
	same "$1: code without a file" "$(rooms)" 0
	sb_start trace -p "$pid" cuda:launch --device-times -o "$T/t.jsonl" --json "$T/run.json"
	wait_for 20 is_lent || fail "$1: no thread is lent: $(cat "$T/sb.err" "/proc/$pid/task/"*/syscall)"
	more "$1: code without a file" "$(rooms)" 0
	tracer=$(sed -n 's/^TracerPid:	//p' "/proc/$pid/status")
}
left() { # nothing is; the program is right
	wait_for 20 untraced "$pid" || fail "$1: it is still traced"
	"$TOOL/textcheck" "$pid" >"$T/text" || fail "$1: its text differs: $(cat "$T/text")"
	[ "$(rooms)" = 0 ] || fail "$1: code without a file: $(cat "/proc/$pid/maps")"
	! grep -E 'memfd:sbinject( |-counts)' "/proc/$pid/maps" || fail "$1: a page is left"
	finish gpu "$pid"
	said gpu "^cupti subscribed 0 enabled 0 subscriptions $2\$" || fail "$1: $(grep '^cupti sub' "$T/gpu.out")"
}

# The agent is loaded and started as the linker's lock is free, and ends at once.
begin tracer
kill -KILL "$tracer"
sleep 0.5
kill -USR1 "$pid"
sb_wait
ended 1
told 'the tracer died; 1 process was restored'
left tracer 2

begin both
kill -KILL "$sb_pid" "$tracer"
sb_wait
"$SB" recover -p "$pid" >"$T/out" 2>&1 &
recover=$!
sleep 0.5
kill -USR1 "$pid"
wait $recover || fail "recover: $(cat "$T/out")"
left both 2

# A detach does not wait for ever: the next session removes what stays.
begin detach
sb_stop
ended 1
told "process $pid: the thread that loads the device agent waits in the dynamic linker"
untraced "$pid" || fail 'it is still traced'
"$TOOL/textcheck" "$pid" >"$T/text" || fail "its text differs: $(cat "$T/text")"
more 'what the thread returns into' "$(rooms)" 0
kill -USR1 "$pid"
awake() { [ "$(waiting)" = 0 ]; }
wait_for 20 awake || fail 'the lent thread does not go on'
gone() { ! grep -qs '^sbinject-device$' "/proc/$pid/task/"*/comm; }
wait_for 20 gone || fail 'the agent is still at work'
sb trace -p "$pid" cuda:launch --for 1s --device-times -o "$T/t.jsonl" --json "$T/run.json"
ended 0
more kernels "$(j cuda.device.kernels)" 20
left detach 4
