#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# PyTorch's CUDA build without a device: the runtime's calls from the start on, its NVTX ranges beside a driver's calls,
# and device times, which are refused with the reason while its profiler runs before, meanwhile and afterwards, and has
# all of its events. PYTORCH names a Python with it.
# limit: 180 s
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"
[ -n "${PYTORCH:-}" ] || skip 'PYTORCH names no Python with the CUDA build of PyTorch'
"$PYTORCH" -c 'import sys, torch; sys.exit(torch.version.cuda is None or torch.cuda.is_available())' 2>/dev/null ||
	skip "$PYTORCH has no CUDA build of PyTorch, or a device"
mkdir "$T/dev"
mknod "$T/dev/nvidia-uvm" c 1 3 || skip 'no device can be made'
: <>"$T/dev/nvidia-uvm" || skip 'devices cannot be opened here'

cat >"$T/work.py" <<'END'
import ctypes, os, signal, sys, time, torch
from torch.profiler import profile, ProfilerActivity
driver = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
device = os.open(sys.argv[2], os.O_RDWR)
a, p, end = torch.randn(32, 32), ctypes.c_uint64(), False
def step():
    global a
    torch.cuda.nvtx.range_push("step")
    driver.cuLaunchKernel(ctypes.c_void_p(0x1000), 4, 1, 1, 64, 1, 1, 0, None, None, None)
    a = (a @ a).tanh()
    torch.cuda.nvtx.range_pop()
    time.sleep(0.002)
def profiled():
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        for _ in range(50):
            step()
    n = {e.key: e.count for e in prof.key_averages()}["aten::mm"]
    assert n == 50, n
    return n
def stop(*_):
    global end
    end = True
signal.signal(signal.SIGTERM, stop)
steps = int(sys.argv[3])
done = profiled() if not steps else 0
print("ready", flush=True)
while not end and (not steps or done < steps):
    step()
    done += 1
    if not steps and done % 200 == 0:
        done += profiled()
        print("profiled", flush=True)
if not steps:
    done += profiled()
print("steps", done)
print("self-check ok", flush=True)
END

sb trace cuda nvtx cudart -o "$T/t.jsonl" --json "$T/run.json" -- \
	"$PYTORCH" "$T/work.py" "$V/libcuda.so.1" "$T/dev/nvidia-uvm" 100
ended 0
said sb '^self-check ok$' || fail "the program: $(cat "$T/sb.out")"
same launches "$(j cuda.launches)" 100
for name in cuLaunchKernel nvtxRangePushA nvtxRangePop; do
	same "$name" "$(grep -c "\"name\":\"$name\"" "$T/t.jsonl")" 100
done
more "the runtime's" "$(grep -c '"name":"__cudaRegisterFunction"' "$T/t.jsonl")" 1000

start torch "$PYTORCH" "$T/work.py" "$V/libcuda.so.1" "$T/dev/nvidia-uvm" 0
for _ in 1 2; do
	sb trace -p "$pid" cuda:launch cudart:launch nvtx --for 2s --device-times -o "$T/t.jsonl" --json "$T/run.json"
	ended 0
	more launches "$(j cuda.launches)" 100
	same kernels "$(j cuda.device.kernels)" null
	told 'without device times: CUPTI cannot be initialized here: there is no device'
	"$TOOL/textcheck" "$pid" >"$T/text" || fail "its text differs: $(cat "$T/text")"
	untraced "$pid" || fail "it is still traced"
	! grep -E "memfd:sbinject( |-counts)" "/proc/$pid/maps" || fail "a page is left"
done
more 'runs of the profiler' "$(grep -c '^profiled$' "$T/torch.out")" 0
finish torch "$pid"
