# SPDX-License-Identifier: MIT
"""loop.py GATE ROUNDS: a PyTorch program on one device.

Warms up, creates the file GATE.ready, waits for GATE, works ROUNDS rounds under torch.profiler, prints one
line of JSON with the profiler's counts of calls by name and its own, and ends. A round multiplies matrices
on two streams, copies both ways, replays a CUDA graph, and reduces by NCCL over its own rank.
"""
import collections
import json
import os
import sys
import time

import torch
import torch.distributed as dist


def graph_of(matrix):
    """Return a CUDA graph of three products of the matrix."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        matrix @ matrix
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = matrix
        for _ in range(3):
            out = out @ matrix
    return graph


def work(matrix, host, streams, graph):
    """One round: two products, two copies, a graph, a sum over all ranks."""
    for stream in streams:
        with torch.cuda.stream(stream):
            (matrix @ matrix).relu_()
    device = host.to("cuda", non_blocking=True)
    host.copy_(device)
    graph.replay()
    dist.all_reduce(device)
    torch.cuda.synchronize()


def step(*state):
    """What a trace has as the Python function of a round."""
    work(*state)


def main():
    gate, rounds = sys.argv[1], int(sys.argv[2])
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29517")
    dist.init_process_group("nccl", rank=0, world_size=1)
    matrix = torch.randn(512, 512, device="cuda")
    host = torch.randn(256, 1024).pin_memory()
    state = matrix, host, [torch.cuda.Stream(), torch.cuda.Stream()], graph_of(matrix)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities):  # its first start initializes CUPTI
        for _ in range(10):
            step(*state)
    with open(gate + ".ready", "w", encoding="ascii"):
        pass
    while not os.path.exists(gate):
        time.sleep(0.01)
    began = time.monotonic()
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(rounds):
            step(*state)
    counts = collections.Counter(e.name for e in profile.events() if e.name.startswith("cu"))
    print(json.dumps({"rounds": rounds, "seconds": time.monotonic() - began, "calls": counts,
                      "torch": torch.__version__}), flush=True)
    while os.path.exists(gate):
        time.sleep(0.01)
    for _ in range(10):
        step(*state)
    dist.destroy_process_group()
    print("ended", flush=True)


if __name__ == "__main__":
    main()
