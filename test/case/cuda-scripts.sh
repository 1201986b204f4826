#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each command of docs/cuda-guide.md, "From a bpftrace script", typed as it stands there (the sweep:
# cuda-scripts-sweep), on a Python program that calls its libraries as PyTorch does, and what it prints against the
# program's own counts. What needs a function of NVIDIA's driver says that there is none, and is typed with a
# tracepoint of this kernel in its place.
# limit: 300 s
# beside others
. "$SRC/test/lib.sh"
need_root
need_uprobe
need python3 jq
export XDG_CONFIG_HOME="$T/none" INFERENCE_LIBS="$V" INFERENCE_DEVICE="$T/nvidiactl"
mknod "$T/nvidiactl" c 1 3 || skip 'no device can be made'
: <>"$T/nvidiactl" || skip 'devices cannot be opened here'

mkdir "$T/bin" "$T/traces"
ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$T/bin/python" # itself, not a script that looks for it
ln -s "$SB" "$T/bin/sbinject"
PATH=$T/bin:$PATH
cp "$SRC/test/victim/python/inference.py" "$T/inference.py"
python -c 'import ctypes' || skip 'Python has no ctypes'
export INFERENCE_ROUNDS=20 PYTHONPATH=$T

# All commands of the section, a line each: what stands between backquotes and begins with one of these words.
sed -n '/^## From a bpftrace script/,$p' "$SRC/docs/cuda-guide.md" | tr '\n' ' ' | grep -o '`[^`]*`' | tr -d '`' | sed 's/\\|/|/g' |
	grep -E '^(sbinject|jq) ' | grep -vx 'sbinject list' | grep -v '^sbinject sweep ' | sort -u >"$T/documented"
: >"$T/typed"

# typed STATUS COMMAND [FROM TO]: as the guide has it, but for the pid, and for what FROM stands for
typed() {
	local command=$2 status=$1

	grep -qxF -- "$command" "$T/documented" || fail "not in the guide: $command"
	echo "$command" >>"$T/typed"
	command=${command/-p PID/-p $pid}
	command=${command/--for 1s/--for 500ms}
	[ $# -lt 3 ] || command=${command//$3/$4}
	rc=0
	timeout 60 bash -c "$command" >"$T/sb.out" 2>"$T/sb.err" </dev/null || rc=$?
	[ "$rc" -eq "$status" ] || fail "exit status $rc, not $status: $command"
}
out() { grep -qE -- "$1" "$T/sb.out" || fail "no '$1' in: $(head -c 3000 "$T/sb.out")"; }
calls_of() { sed -n "s/^calls $1 //p" "$T/own"; }
bytes_of() { sed -n "s/^bytes $1 //p" "$T/own"; }
row() { awk -v name="$1" '$1 == name { print $2; exit }' "$T/sb.err"; } # calls of a target in the table of times
lines() { grep -c "\"type\":\"$2\",\"name\":\"$1\"" "${3:-$T/run.jsonl}"; }
gone() { ! kill -0 "$1" 2>/dev/null; }

# ---- from the start to the end: all is known ----
COUNTED='cuLaunchKernel cuMemAlloc cuMemFree cuMemcpyHtoD cuStreamSynchronize cuModuleGetFunction'
pid=none
typed 0 'sbinject trace cuda -o run.jsonl -- python inference.py'
grep -v '^sbinject' "$T/sb.out" >"$T/own"
grep -qx 'self-check ok' "$T/own" || fail "the program: $(cat "$T/own")"
for name in $COUNTED; do
	same "calls of $name" "$(jq -s "map(select(.name | test(\"^${name}(_v2)?\$\"))) | length" "$T/run.jsonl")" "$(calls_of "$name")"
	same "row of $name" "$(row "cuda:$name")" "$(calls_of "$name")"
done
same 'looked up, as the runtime does' "$(lines cuGetProcAddress_v2 native)" "$(calls_of cuGetProcAddress)"
told "^cuda: API calls [0-9]*, launches 40, allocations 20, bytes allocated $(bytes_of cuMemAlloc), transfers 20, bytes transferred $(bytes_of cuMemcpyHtoD), waits 20 of "
told '^ *20 .* cuda  *gemm_1$'

typed 0 'jq -r .type run.jsonl | sort | uniq -c'
api=$(jq -s 'map(select(.phase == "X")) | length' "$T/run.jsonl")
out "^ *$api native$"
typed 0 'jq -r .name run.jsonl | sort | uniq -c'
out '^ *40 cuLaunchKernel$'
typed 0 'jq -s '\''map(select(.dur_us)) | sort_by(-.dur_us)[:10][] | {name, dur_us}'\'' run.jsonl'
same 'slowest' "$(grep -c '"name": "cuStreamSynchronize"' "$T/sb.out")" 10
typed 0 'sbinject report run.jsonl --slowest 10'
same 'slowest in the report' "$(sed -n '/^slowest/,$p' "$T/sb.out" | grep -c ' cuStreamSynchronize ')" 10
typed 0 'jq -s '\''map(select(.name | startswith("cuMemAlloc")).args.bytes) | add'\'' run.jsonl'
same 'bytes allocated' "$(cat "$T/sb.out")" "$(bytes_of cuMemAlloc)"
typed 0 'jq -s '\''map(select(.name | startswith("cuMemcpy")).args.bytes) | add'\'' run.jsonl'
same 'bytes copied' "$(cat "$T/sb.out")" "$(bytes_of cuMemcpyHtoD)"
typed 0 'sbinject report run.jsonl'
out '^memory \(cuda\): 20 allocations of '"$(bytes_of cuMemAlloc)"' bytes, 20 freed '
"$SB" report "$T/run.jsonl" --json "$T/run.json" >/dev/null || fail report
gaps=$(($(j cuda.threads.0.gaps.total_ns) / $(j cuda.threads.0.gaps.n)))
typed 0 'jq -s '\''map(select(.name == "cuLaunchKernel").ts) | (last - first) / (length - 1)'\'' run.jsonl'
# From begin to begin, which has the launch itself.
awk -v a="$(cat "$T/sb.out")" -v b="$gaps" 'BEGIN { exit !(a * 1e9 > b && a * 1e9 < b * 1.2 + 20000) }' ||
	fail "gaps: $(cat "$T/sb.out") s, $gaps ns in the report"
typed 0 'sbinject report run.jsonl --timeline'
out ' +\|'
typed 0 'sbinject report run.jsonl --histogram'
out '^times of cuStreamSynchronize, 20 calls$'
same 'in the histogram' "$(sed -n '/^times of cuLaunchKernel,/,/^$/p' "$T/sb.out" | awk 'NR > 2 { n += $3 } END { print n }')" 40
typed 0 'sbinject report run.jsonl -o run.json'
same "Chrome's" "$(jq 'map(select(.ph == "X" and .cat == "native")) | length' "$T/run.json")" "$api"
typed 0 'jq -c '\''select(.phase == "X") | (.phase = "B"), (.phase = "E" | .ts += .dur_us / 1e6)'\'' run.jsonl | jq -cs '\''sort_by(.ts)[]'\'''
same 'begins' "$(grep -c '"phase":"B"' "$T/sb.out")" "$api"
same 'ends' "$(grep -c '"phase":"E"' "$T/sb.out")" "$api"
jq -es 'map(.ts) as $t | $t == ($t | sort)' "$T/sb.out" >/dev/null || fail 'not in the order of time'

typed 0 'sbinject trace cuda -o "traces/trace_$(date +%s).jsonl" -- python inference.py'
same 'a file by the time' "$(compgen -G "$T/traces/trace_[0-9]*.jsonl" | wc -l)" 1
typed 0 'sbinject trace cuda -- python -c "import inference"'
same 'of a module' "$(row cuda:cuLaunchKernel)" 40
typed 0 'sbinject trace cudart:launch cuda:launch cuda:module -o run.jsonl -- python inference.py'
same "the runtime's" "$(lines cudaLaunchKernel native)" "$(calls_of cudaLaunchKernel)"
same "the driver's" "$(lines cuLaunchKernel native)" "$(calls_of cuLaunchKernel)"
same 'by name' "$(grep -c '"name":"cudaLaunchKernel".*"kernel_name":"relu_2"' "$T/run.jsonl")" 20

typed 0 'sbinject trace cuda:cuCtxCreate cuda:cuCtxDestroy cuda:cuDevicePrimaryCtxRetain -- python inference.py'
same 'contexts' "$(for name in cuCtxCreate cuCtxDestroy cuDevicePrimaryCtxRetain; do row cuda:$name; done | tr '\n' ' ')" '0 1 1 '

# ---- with the kernel ----
typed 0 'sbinject trace cuda --kernel -o run.jsonl -- python inference.py'
told 'ioctls 20 of '
same ioctls "$(lines NV_ESC_RM_CONTROL kernel)" "$(calls_of ioctl)"
same launches "$(lines cuLaunchKernel native)" 40
more 'waits' "$(lines 'off CPU: sleeping' kernel)" 10
typed 0 'jq -r '\''.args.cmd // empty'\'' run.jsonl | while read c; do echo $((c >> 30)) $((c >> 16 & 16383)) $((c >> 8 & 255)) $((c & 255)); done'
same 'decoded' "$(sort "$T/sb.out" | uniq -c | tr -s ' ')" ' 20 3 32 70 42'
typed 0 'jq -rs '\''map(select(.phase == "X")) | sort_by(.tid, .ts)[] | [.tid, .ts, .dur_us, .type, .name] | @tsv'\'' run.jsonl'
# Each wait has the time off the processor that it was, next to it: the stand-in sleeps.
asleep=$(grep -A1 'cuStreamSynchronize$' "$T/sb.out" | grep -c 'kernel.off CPU: sleeping$')
more 'waits with their sleep' "$asleep" 14
typed 0 'sbinject list --kernel'
out '^ioctl:nvidia\* '
out '^kernel:nvidia_unlocked_ioctl .*(no: this kernel has no function|fentry|kprobe)'
typed 3 "sbinject list 'kernel:*nv*sched*'"
grep -q "no function '\*nv\*sched\*'" "$T/sb.out" "$T/sb.err" || fail "no reason: $(cat "$T/sb.out")"
typed 125 'sbinject kernel:nvidia_unlocked_ioctl 0 --require-hits -- python inference.py'
told "this kernel has no function 'nvidia_unlocked_ioctl'"
typed 0 'sbinject kernel:nvidia_unlocked_ioctl 0 --require-hits -- python inference.py' kernel:nvidia_unlocked_ioctl tracepoint:sched:sched_switch
typed 125 'sbinject kernel:nvidia_unlocked_ioctl 0 --require-hits -- python inference.py' kernel:nvidia_unlocked_ioctl ioctl:no-such-name
typed 0 "sbinject trace 'kernel:nv_*' 'kernel:nvidia*' -- python inference.py" "'kernel:nv_*' 'kernel:nvidia*'" "'tracepoint:sched:sched_process*'"
told '^ *-  *0  *1 .* sched_process_exec  *sched$'

# ---- one that runs ----
unset INFERENCE_ROUNDS
start server python inference.py
typed 0 'sbinject --backend uprobe cuda -p PID --for 1s'
more 'by uprobe' "$(awk '$1 == "cuda:cuLaunchKernel" && $2 == "uprobe" { print $5 }' "$T/sb.err")" 20
typed 0 'sbinject trace cuda -p PID --for 1s'
more launches "$(row cuda:cuLaunchKernel)" 20
typed 0 'sbinject list cuda -p PID'
out '^cuda:cuLaunchKernel .* cuLaunchKernel .*jump$'
out '^cuda:cuLaunchKernel .* cuLaunchKernel_ptsz .*jump$'
typed 0 "sbinject 'libcuda.so.1:cu*' 0 --hits-by-function -p PID --for 1s"
told '^ *[1-9][0-9]*  cuMemAlloc_v2 '
typed 0 "sbinject trace 'libcuda.so.1:cuMem*' -p PID --for 1s -o /dev/stdout --format jsonl | jq -r .name"
same 'only these' "$(grep -v '^sbinject$\|^python' "$T/sb.out" | sort -u | tr '\n' ' ')" 'cuMemAlloc_v2 cuMemFree_v2 cuMemcpyHtoD_v2 '
typed 0 'sbinject trace cuda:cuLaunchKernel cuda:cuMemAlloc -p PID --for 1s'
more launches "$(row cuda:cuLaunchKernel)" 20
more allocations "$(row cuda:cuMemAlloc)" 10
same 'and no more' "$(row cuda:cuMemFree)" ''
typed 0 "sbinject trace cuda:launch --kernel -p PID --for 1s -o /dev/stdout --format jsonl | grep -E 'cuLaunchKernel|NV_ESC'"
more 'live launches' "$(lines cuLaunchKernel native "$T/sb.out")" 20
more 'live ioctls' "$(lines NV_ESC_RM_CONTROL kernel "$T/sb.out")" 10
typed 0 'sbinject trace libcuda.so.1:cuMemAlloc_v2 arg=size:2:u64 sum=size -p PID --for 1s'
awk '$1 == "libcuda.so.1:cuMemAlloc_v2" && $2 == "size" { exit !($4 / $3 > 4096 && $4 / $3 < 4100) }' "$T/sb.err" ||
	fail 'the sum of sizes'
typed 0 'sbinject trace libcuda.so.1:cuMemAlloc_v2 ret=result:i32 -p PID --for 1s -o run.jsonl'
more 'returned' "$(grep -c '"result":0' "$T/run.jsonl")" 10
typed 0 'sbinject trace cuda:launch -p PID --for 1s -o run.jsonl'
typed 0 'sbinject report run.jsonl --histogram'
out '^times of cuLaunchKernel, [0-9]+ calls$'
typed 0 'sbinject trace nccl -p PID --for 1s'
more collectives "$(row nccl:ncclAllReduce)" 10
more groups "$(row nccl:ncclGroupEnd)" 10
awk '$1 == "nccl:ncclGroupEnd" { exit !($3 ~ /us$/ && $3 + 0 >= 50 || $3 ~ /ms$/) }' "$T/sb.err" || fail 'a group sleeps for 50 us'
typed 0 'sbinject trace cuda:sync --min 1ms -p PID --for 1s -o run.jsonl'
more 'all are counted' "$(row cuda:cuStreamSynchronize)" 10
less 'long ones' "$(lines cuStreamSynchronize native)" "$(row cuda:cuStreamSynchronize)"
typed 0 "sbinject trace cuda:sync 'offcpu:*' -p PID --for 1s"
more 'off the processor' "$(row 'offcpu:*')" 10
typed 0 "sbinject trace 'ioctl:nvidia*' -p PID --for 1s -o run.jsonl"
more 'requests' "$(grep -c '"name":"NV_ESC_RM_CONTROL".*"status":7,.*"detail_name":"NV2080_CTRL_CMD_FB_GET_INFO_V2"' "$T/run.jsonl")" 10
typed 0 'sbinject trace tracepoint:dma_fence:dma_fence_signaled kthreads=yes -p PID --for 1s' \
	tracepoint:dma_fence:dma_fence_signaled tracepoint:sched:sched_switch
more 'of a tracepoint' "$(row tracepoint:sched:sched_switch)" 10
typed 0 'sbinject trace tracepoint:gpu_mem:gpu_mem_total arg=bytes:3:u64 -p PID --for 1s' gpu_mem:gpu_mem_total sched:sched_switch
for command in 'sbinject trace kernel:nvidia_unlocked_ioctl arg=cmd:2:u32 ret=result:i64 -p PID --for 1s' \
	'sbinject trace kernel:os_alloc_mem arg=size:2:u64 sum=size -p PID --for 1s' \
	'sbinject trace kernel:nv_kthread_q_schedule_q_item kthreads=yes -p PID --for 1s -o run.jsonl'; do
	typed 3 "$command" # test/emulator/kernel.sh has these functions
	told 'this kernel has no function'
done
let_go "$pid" # uprobes leave a page of the kernel's
finish server "$pid"
sort -u "$T/typed" | diff - "$T/documented" >"$T/left" || fail "in the guide, and not typed: $(grep '^>' "$T/left")"
