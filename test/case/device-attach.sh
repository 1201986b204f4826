#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Device times of a running process: after the detach nothing is enabled, subscribed, traced or hooked,
# no descriptor and no thread of ours is left; the agent's few pages of code stay, since CUPTI keeps
# its callbacks, and the next session uses them again. A process that is killed leaves what was read.
# beside others
# limit: 120 s
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"
mkdir "$T/dev"
mknod "$T/dev/nvidia-uvm" c 1 3 || skip 'no device can be made'
: <>"$T/dev/nvidia-uvm" || skip 'devices cannot be opened here'

state() { # PID: descriptors, names of threads, mappings but for the heap and stacks
	{
		for fd in "/proc/$1/fd/"*; do echo "${fd##*/} $(readlink "$fd")"; done
		cat "/proc/$1/task/"*/comm | sort
		grep -E ' /| ..x. ' "/proc/$1/maps" | cut -d' ' -f1-3,6-
	} >"$T/$2"
}
trace() {
	sb trace -p "$pid" cuda:launch cuda:memset --for 2s --device-times -o "$T/t.jsonl" --json "$T/run.json"
	ended 0
	more kernels "$(j cuda.device.kernels)" 50
	same 'all records' "$(j cuda.device.records)" "$(j cuda.device.written)"
	same 'in the trace' "$(grep -c '"type":"device"' "$T/t.jsonl")" "$(j cuda.device.written)"
	"$TOOL/textcheck" "$pid" >"$T/text" || fail "its text differs: $(cat "$T/text")"
	untraced "$pid" || fail 'it is still traced'
}

start gpu "$V/cuda" -t 3 -u 1000000 -c "$V/libcupti.so.12" -d "$T/dev/nvidia-uvm" "$V/libcuda.so.1"
state "$pid" before
"$SB" doctor -p "$pid" >"$T/doctor" 2>&1 || true # of other rows
grep -qE '^  device times +yes$' "$T/doctor" || fail "doctor: $(cat "$T/doctor")"
trace
state "$pid" after
diff "$T/before" "$T/after" | grep '^[<>]' >"$T/diff" || fail 'nothing of the agent is left: how are its callbacks called?'
# CUPTI's own thread has the program's name.
same 'threads' "$(grep -c '^> cuda$' "$T/diff")" 1
! grep -vE '^> (cuda|[^ ]+ [r-][w-][x-]p [0-9a-f]+ +/memfd:sbinject-device \(deleted\))$' "$T/diff" ||
	fail "more is left: $(cat "$T/diff")"
same 'mappings' "$(grep -c sbinject-device "$T/diff")" 4
for i in 1 2; do
	trace
	state "$pid" again
	diff "$T/after" "$T/again" >"$T/diff" || fail "session $i after it leaves more: $(cat "$T/diff")"
done
finish gpu "$pid"
said gpu '^cupti subscribed 0 enabled 0 subscriptions 6$' || fail "what is left: $(grep '^cupti sub' "$T/gpu.out")"

# Killed: what was read by then is in the trace, and no sum claims to be all.
start gpu "$V/cuda" -u 1000000 -c "$V/libcupti.so.12" -d "$T/dev/nvidia-uvm" "$V/libcuda.so.1"
at_work() { grep -qs '^sbinject-device$' "/proc/$pid/task/"*/comm; }
sb_start trace -p "$pid" cuda:launch --device-times -o "$T/t.jsonl" --json "$T/run.json"
wait_for 20 at_work || fail "no agent: $(cat "$T/sb.err")"
sleep 1
kill -KILL "$pid"
sb_wait
same 'kernels of a killed process' "$(j cuda.device.kernels)" null
grep -q 'without exit()' <<<"$(j cuda.device.reason)" || fail "the reason: $(j cuda.device.reason)"
more 'records that were read' "$(j cuda.device.written)" 50
same 'in the trace' "$(grep -c '"type":"device"' "$T/t.jsonl")" "$(j cuda.device.written)"
