#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# NVIDIA's own CUPTI, in a program without a device: it is refused with the reason, and the program
# goes on. CUPTI_LIBRARIES names more of them.
# beside idle work, two at a time
# limit: 60 s
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"
mkdir "$T/dev"
mknod "$T/dev/nvidia-uvm" c 1 3 || skip 'no device can be made'
: <>"$T/dev/nvidia-uvm" || skip 'devices cannot be opened here'
n=0
for lib in ${CUPTI_LIBRARIES:-} /usr/local/cuda*/lib*/libcupti.so.[1-9][0-9] \
	/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so.[1-9][0-9]; do
	[ -e "$lib" ] || continue
	n=$((n + 1))
	sb trace cuda:launch --device-times -o "$T/t.jsonl" --json "$T/run.json" -- \
		"$V/cuda" -n 250 -u 1000000 -c "$lib" -d "$T/dev/nvidia-uvm" "$V/libcuda.so.1"
	ended 0
	said sb '^self-check ok$' || fail "$lib: the program: $(cat "$T/sb.out")"
	same "$lib: launches" "$(j cuda.launches)" 750
	same "$lib: kernels" "$(j cuda.device.kernels)" null
	told 'without device times: CUPTI'
	grep -qE 'there is no device|cuptiSubscribe\(\) returned' <<<"$(j cuda.device.reason)" ||
		fail "$lib: the reason: $(j cuda.device.reason)"
done
[ $n -gt 0 ] || skip 'no libcupti.so here (CUPTI_LIBRARIES names one)'
