# SPDX-License-Identifier: MIT
"""compiled.py WORKDIR|-: calls step() and a function that torch compiles, and counts both.

The compiler of torch (dynamo) takes the place of the interpreter's frame evaluation, gives functions
code of its own and makes new code where the shapes of arguments change. With a folder it goes on
until the file `stop` is there; else for 2000 rounds.
"""

import os
import sys

import torch

calls = {"step": 0, "compiled": 0}


def step(n):
    calls["step"] += 1
    return n + 1


def compiled(x):
    return x.sin() * 2 + x.cos()


def rounds():
    folder = sys.argv[1]
    done = 0
    while folder != "-" or done < 2000:
        if done % 100 == 0 and folder != "-" and os.path.exists(folder + "/stop"):
            return
        yield done
        done += 1


def main():
    fast = torch.compile(compiled, backend="eager")
    right = True
    tensors = [torch.arange(16.0 + n) for n in range(4)]
    wanted = [x.sin() * 2 + x.cos() for x in tensors]
    fast(tensors[0])
    calls["compiled"] += 1
    print("ready", flush=True)
    for n in rounds():
        which = n // 500 % 4  # another shape: compiled anew
        calls["compiled"] += 1
        right = torch.allclose(fast(tensors[which]), wanted[which]) and step(n) == n + 1 and right
    for name, count in calls.items():
        print("calls", name, count)
    print("self-check ok" if right else "self-check FAILED", flush=True)


main()
