#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The preset cuda on a program with four threads that reaches its driver through cuGetProcAddress: all
# versions of a function are one row, and what is counted is what the driver itself counted.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"

LIB=$V/libcuda.so.1
log() { sed -n "s/^${3:-calls} $2 //p" "$T/$1.out"; }
sum() { # calls|bytes LOG NAME...: what the driver counted in these
	local what=$1 log=$2 name n=0

	shift 2
	for name; do
		n=$((n + $(log "$log" "$name" "$what")))
	done
	echo $n
}
# counted LOG: the figures of the run against the driver's log
counted() {
	same launches "$(j cuda.launches)" "$(sum calls "$1" cuLaunchKernel cuLaunchKernelEx)"
	same 'launches of the kind' "$(j cuda.kinds.launch.calls)" "$(j cuda.launches)"
	same allocations "$(j cuda.allocations)" "$(sum calls "$1" cuMemAlloc cuMemAllocAsync)"
	same transfers "$(j cuda.transfers)" \
		"$(sum calls "$1" cuMemcpyHtoD cuMemcpyDtoHAsync cuMemcpyPeer cuMemcpy2D)"
	same 'bytes allocated' "$(j cuda.allocated_bytes)" "$(sum bytes "$1" cuMemAlloc cuMemAllocAsync)"
	same syncs "$(j cuda.syncs)" "$(sum calls "$1" cuStreamSynchronize cuCtxSynchronize)"
	same free "$(j cuda.kinds.free.calls)" "$(log "$1" cuMemFree)"
	same graph "$(j cuda.kinds.graph.calls)" "$(log "$1" cuGraphLaunch)"
	same memset "$(j cuda.kinds.memset.calls)" "$(log "$1" cuMemsetD32)"
	same event "$(j cuda.kinds.event.calls)" "$(log "$1" cuEventRecord)"
}

# From the first call on: a library that is opened later.
sb trace cuda --json "$T/run.json" -- "$V/cuda" -t 4 -n 100 -r "$LIB"
ended 0
cp "$T/sb.out" "$T/launched.out"
said launched '^self-check ok$' || fail "the program: $(cat "$T/launched.out")"
counted launched
# A copy of a rectangle has its bytes behind a pointer.
same 'bytes of rectangles too' "$(j cuda.transferred_bytes)" null
j cuda.transferred_bytes_reason | grep -q '^cuda:cuMemcpy2D\*: ' || fail "reason: $(j cuda.transferred_bytes_reason)"
same 'API calls' "$(j cuda.api_calls)" "$(awk '/^calls / { n += $3 } END { print n }' "$T/launched.out")"
same 'calls without an end' "$(j cuda.kinds.launch.missed)" 0
# Each wait sleeps for 300 us; the program's own clock holds what a call takes and more.
[ "$(j cuda.sync_ns)" -ge $(($(j cuda.syncs) * 300000)) ] || fail "time of waits: $(j cuda.sync_ns)"
[ "$(j cuda.sync_ns)" -le "$(sed -n 's/^took sync //p' "$T/launched.out")" ] ||
	fail "time of waits: $(j cuda.sync_ns) of $(sed -n 's/^took sync //p' "$T/launched.out")"
same 'the name of a row' "$(j targets.0.spec)" cuda:cuLaunchKernel
same 'its kind' "$(j targets.0.kind)" launch
same 'versions of a function' "$(j targets.0.sites.#)" 2
same 'its hits' "$(j targets.0.hits)" "$(log launched cuLaunchKernel)"
told '^cuda: API calls [0-9]*, launches [0-9]*, allocations '
told '^cuda:cuLaunchKernel '
! grep -q '^cuda:cuLaunchGrid ' "$T/sb.err" || fail 'a row for a function without a call'

# Bytes, where each copy names them.
sb trace cuda:memcpy cuda:alloc --json "$T/run.json" -- "$V/cuda" -t 4 -n 100 "$LIB"
ended 0
cp "$T/sb.out" "$T/copies.out"
same 'bytes transferred' "$(j cuda.transferred_bytes)" \
	"$(sum bytes copies cuMemcpyHtoD cuMemcpyDtoHAsync cuMemcpyPeer)"
same 'bytes allocated' "$(j cuda.allocated_bytes)" "$(sum bytes copies cuMemAlloc cuMemAllocAsync)"
told '^cuda: allocations 800, bytes allocated [0-9]*, transfers 1200, bytes transferred [0-9]*$'

# In the middle of its life, and delays on launches: each launch, and nothing else.
start cuda "$V/cuda" -t 4 -n 50 -g "$T/gate" "$LIB"
attach_told "$pid" cuda:launch 2us
touch "$T/gate"
sb_wait
ended 0
said cuda '^self-check ok$' || fail "the program: $(cat "$T/cuda.out")"
same launches "$(j cuda.launches)" "$(sum calls cuda cuLaunchKernel cuLaunchKernelEx)"
same 'delayed launches' $(($(j targets.0.delayed) + $(j targets.1.delayed))) "$(j cuda.launches)"
same 'API calls of a part' "$(j cuda.api_calls)" null
j cuda.api_calls_reason | grep -q 'not a target of this run' || fail 'no reason for unknown API calls'
same 'a kind that is not a target' "$(j cuda.kinds.free)" ''

# One function by its name; threads of a name are not all calls.
sb cuda:cuLaunchKernel_v2_ptsz 0 thread=nobody --json "$T/run.json" -- "$V/cuda" -n 3 "$LIB"
ended 0
same 'targets of one function' "$(j targets.#)" 1
same 'versions of it' "$(j targets.0.sites.#)" 2
same 'hits of a thread that is not there' "$(j targets.0.hits)" 0
same launches "$(j cuda.launches)" null
