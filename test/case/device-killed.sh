#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL of sbinject and of its tracer while device times are taken: the agent sees within seconds
# that nothing reads any more, disables its records and unmaps its memory. The program goes on.
# beside others
# limit: 120 s
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"
mkdir "$T/dev"
mknod "$T/dev/nvidia-uvm" c 1 3 || skip 'no device can be made'
: <>"$T/dev/nvidia-uvm" || skip 'devices cannot be opened here'

start gpu "$V/cuda" -t 2 -u 5000000 -c "$V/libcupti.so.12" -d "$T/dev/nvidia-uvm" "$V/libcuda.so.1"
named() { cat "/proc/$pid/task/"*/comm 2>/dev/null | grep -c '^sbinject-device$'; }
rooms() { awk '/^[^ ]+ r-xp 00000000 00:00 0 *$/' "/proc/$pid/maps" | wc -l; }
at_work() { [ "$(named)" = 1 ]; }
gone() { [ "$(named)" = 0 ]; }
same 'before' "$(named)" 0
sb_start trace -p "$pid" cuda:launch --device-times -o "$T/t.jsonl" --json "$T/run.json"
wait_for 20 at_work || fail "no agent: $(cat "$T/sb.err")"
sleep 0.5
more 'code without a file' "$(rooms)" 0
tracer=$(sed -n 's/^TracerPid:	//p' "/proc/$pid/status")
kill -KILL "$sb_pid" "$tracer"
sb_wait
wait_for 20 gone || fail 'the agent is still at work'
"$SB" recover -p "$pid" >"$T/out" 2>&1 || fail "recover: $(cat "$T/out")"
"$TOOL/textcheck" "$pid" >"$T/text" || fail "its text differs: $(cat "$T/text")"
[ "$(rooms)" = 0 ] || fail "code without a file: $(cat "$T/out" "/proc/$pid/maps" "/proc/$pid/task/"*/comm)"
untraced "$pid" || fail 'it is still traced'

# The next session begins as if nothing had been.
sb trace -p "$pid" cuda:launch --for 3s --device-times -o "$T/t.jsonl" --json "$T/run.json"
ended 0
more kernels "$(j cuda.device.kernels)" 20
finish gpu "$pid"
said gpu '^cupti subscribed 0 enabled 0 subscriptions 4$' || fail "what is left: $(grep '^cupti sub' "$T/gpu.out")"
