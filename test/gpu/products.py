#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""products.py GATE N: N matrix products on a device, between two events of its own.

Makes GATE.ready once it is warm, works when GATE is there, prints a JSON line with the ns between the events,
and, when GATE is gone, profiles ten more with torch.profiler: a line with how many kernels that saw.
"""
import json
import os
import sys
import time

import torch

gate, n = sys.argv[1], int(sys.argv[2])
a = torch.rand(4096, 4096, device="cuda")
b = torch.rand(4096, 4096, device="cuda")
torch.mm(a, b)
torch.cuda.synchronize()
with open(gate + ".ready", "w", encoding="ascii"):
    pass
while not os.path.exists(gate):
    time.sleep(0.01)
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record()
for _ in range(n):
    torch.mm(a, b)
end.record()
torch.cuda.synchronize()
print(json.dumps({"elapsed_ns": int(begin.elapsed_time(end) * 1e6), "products": n}), flush=True)
while os.path.exists(gate):
    time.sleep(0.01)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
    for _ in range(10):
        torch.mm(a, b)
    torch.cuda.synchronize()
seen = sum(e.count for e in profile.key_averages() if e.device_type == torch.autograd.DeviceType.CUDA)
print(json.dumps({"profiled": seen}), flush=True)
