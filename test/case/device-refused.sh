#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Device times are refused with the reason where another one uses CUPTI, its records are not known or
# it does not answer; what is not whole is no sum. The calls are traced all the same, the program goes
# on, and nothing is left enabled or subscribed.
# beside others
# limit: 180 s
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"
mkdir "$T/dev"
mknod "$T/dev/nvidia-uvm" c 1 3 || skip 'no device can be made'
: <>"$T/dev/nvidia-uvm" || skip 'devices cannot be opened here'

run() { # WORDS ROUNDS LIBRARIES...: the program, with the stand-in as the words make it
	local words=$1 rounds=$2
	shift 2
	VICTIM_CUPTI=$words sb trace cuda:launch --device-times -o "$T/t.jsonl" --json "$T/run.json" -- \
		"$V/cuda" -d "$T/dev/nvidia-uvm" -n "$rounds" -u 1000000 "$@"
	ended 0
	said sb '^self-check ok$' || fail "$words: the program: $(cat "$T/sb.out")"
	more "$words: calls" "$(j trace.calls)" $((3 * rounds - 1))
}
left() { # WORDS LINE: what the stand-in says at its end
	same "$1: what is left" "$(grep '^cupti subscribed' "$T/sb.out")" "cupti $2"
}
unknown() { # WORDS REASON
	same "$1: kernels" "$(j cuda.device.kernels)" null
	same "$1: rows" "$(j cuda.device.by_kernel)" null
	grep -qE -- "$2" <<<"$(j cuda.device.reason)" || fail "$1: the reason is '$(j cuda.device.reason)'"
	grep -qE -- "device times: not known: .*$2" "$T/sb.err" || fail "$1: the summary: $(cat "$T/sb.err")"
}
refused() { # WORDS REASON LEFT
	run "$1" 250 -c "$V/libcupti.so.12" "$V/libcuda.so.1"
	unknown "$1" "$2"
	same "$1: records" "$(j cuda.device.records)" null
	same "$1: none in the trace" "$(grep -c '"type":"device"' "$T/t.jsonl")" 0
	grep -qE -- "warning: process [0-9]+: without device times: .*$2" "$T/sb.err" ||
		fail "$1: no warning: $(cat "$T/sb.err")"
	left "$1" "$3"
}
refused subscribed 'another profiler has subscribed' 'subscribed 0 enabled 0 subscriptions 0'
refused registered 'another user of CUPTI has registered its buffers' 'subscribed 0 enabled 0 subscriptions 1'
refused uninitialized 'there is no device' 'subscribed 0 enabled 0 subscriptions 0'
refused version=29 'version 29 is not known' 'subscribed 0 enabled 0 subscriptions 0'
refused refuse 'cuptiActivityEnable\(\) returned 999' 'subscribed 0 enabled 0 subscriptions 1'

# Not mapped, and there is no CUDA runtime beside which it could be.
run '' 250 "$V/libcuda.so.1"
unknown 'not mapped' 'LD_PRELOAD=PATH/libcupti.so.N'

# It begins, and does not end whole.
run odd 300 -c "$V/libcupti.so.12" "$V/libcuda.so.1"
unknown odd 'unknown kind or without times'
same 'odd: unknown' "$(j cuda.device.unknown)" $((2 * $(j cuda.device.written)))
same 'odd: all' "$(j cuda.device.records)" $(($(j cuda.device.unknown) + $(j cuda.device.written)))
same 'odd: in the trace' "$(grep -c '"type":"device"' "$T/t.jsonl")" "$(j cuda.device.written)"
run later 500 -c "$V/libcupti.so.12" "$V/libcuda.so.1"
unknown later 'another profiler began in the process meanwhile'
left later 'subscribed 0 enabled 1 subscriptions 1' # what the other one may need by now

# It does not answer: the program ends when it ends, and a detach does not wait for it.
run hang 250 -c "$V/libcupti.so.12" "$V/libcuda.so.1"
unknown hang 'CUPTI had not answered'
