#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The preset opencl on a real OpenCL runtime: a kernel is built and run, each call is counted, launches
# are delayed, and the results are right.
# limit: 200 s
# beside others
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none" POCL_CACHE_DIR="$T/pocl" POCL_MAX_PTHREAD_COUNT=2
mkdir "$T/pocl"

rc=0
timeout 60 "$V/opencl" -n 1 >"$T/opencl.out" 2>&1 || rc=$?
[ $rc -ne 77 ] || skip 'no OpenCL runtime with a device (pocl-opencl-icd)'
[ $rc -eq 0 ] || skip "the OpenCL runtime does not work here: $(tail -n 1 "$T/opencl.out")"

# hits NAME: of a target of the run
hits() {
	local i

	for i in $(seq 0 $(($(j targets.#) - 1))); do
		[ "$(j "targets.$i.spec")" != "opencl:$1" ] || j "targets.$i.hits"
	done
}

sb trace opencl --json "$T/run.json" -- "$V/opencl" -n 7
ended 0
grep -q '^self-check ok$' "$T/sb.out" || fail "the program: $(cat "$T/sb.out")"
for name in clEnqueueNDRangeKernel clEnqueueWriteBuffer clEnqueueReadBuffer clFinish clCreateBuffer \
	clReleaseMemObject 'clSetKernelArg*'; do
	same "calls of $name" "$(hits "$name")" 7
done
same 'calls of clBuildProgram' "$(hits clBuildProgram)" 1

start opencl "$V/opencl" -n 5 -g "$T/gate"
attach_told "$pid" opencl:launch 10us opencl:sync 0
touch "$T/gate"
sb_wait
ended 0
said opencl '^self-check ok$' || fail "the program: $(cat "$T/opencl.out")"
same 'the delayed function' "$(j targets.0.spec)" opencl:clEnqueueNDRangeKernel
same 'delayed launches' "$(j targets.0.delayed)" 5
same waits "$(hits clFinish)" 5
