#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls the stand-in libraries in $INFERENCE_LIBS as PyTorch calls the real ones: the driver by addresses that
cuGetProcAddress gave, kernels by handles that it asked for by name, the runtime and NCCL by their symbols. With
INFERENCE_DEVICE it also asks that device for something in each round. It makes INFERENCE_ROUNDS, or works until
SIGTERM, and then prints `calls FUNCTION N` and `bytes FUNCTION N` as it has counted them itself."""
import collections
import ctypes
import fcntl
import os
import signal
import struct
import sys
import time

calls, sums = collections.Counter(), collections.Counter()
libs = os.environ["INFERENCE_LIBS"]
cuda = ctypes.CDLL(libs + "/libcuda.so.1", ctypes.RTLD_GLOBAL)
cudart = ctypes.CDLL(libs + "/libcudart.so.13")
nccl = ctypes.CDLL(libs + "/libnccl.so.2")
u64, ptr, uint = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint


class Dim3(ctypes.Structure):
    _fields_ = [("x", uint), ("y", uint), ("z", uint)]


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def called(function, name, *args):
    calls[name] += 1
    assert function(*args) == 0, name


def driver(name, *types):
    """As the runtime gets each function of the driver."""
    found = ptr()
    called(cuda.cuGetProcAddress_v2, "cuGetProcAddress", name.encode(), ctypes.byref(found), 13000, u64(1), None)
    function = ctypes.CFUNCTYPE(ctypes.c_int, *types)(found.value)
    return lambda *args: called(function, name, *args)


class Linear:
    def __init__(self, kernel):
        self.kernel = kernel

    def __call__(self, stream):
        cuLaunchKernel(self.kernel, 40, 2, 1, 128, 1, 1, 0, stream, None, None)
        called(cudart.cudaLaunchKernel, "cudaLaunchKernel", ptr(self.kernel), Dim3(1, 1, 1), Dim3(32, 1, 1), None,
               ctypes.c_size_t(0), None)


cuLaunchKernel = driver("cuLaunchKernel", ptr, *[uint] * 7, ptr, ptr, ptr)
cuMemAlloc = driver("cuMemAlloc", ctypes.POINTER(u64), ctypes.c_size_t)
cuMemFree = driver("cuMemFree", u64)
cuMemcpyHtoD = driver("cuMemcpyHtoD", u64, ptr, ctypes.c_size_t)
cuStreamSynchronize = driver("cuStreamSynchronize", ptr)
cuModuleGetFunction = driver("cuModuleGetFunction", ctypes.POINTER(ptr), ptr, ctypes.c_char_p)
comm, data = ptr(), ctypes.create_string_buffer(1 << 16)
device = os.open(os.environ["INFERENCE_DEVICE"], os.O_RDWR) if "INFERENCE_DEVICE" in os.environ else -1


def ask():
    """NV_ESC_RM_CONTROL, of which the stand-in knows nothing."""
    request = bytearray(struct.pack("IIIIQII", 1, 2, 0x20801303, 0, 0, 0, 7))
    calls["ioctl"] += 1
    try:
        fcntl.ioctl(device, 3 << 30 | len(request) << 16 | ord("F") << 8 | 0x2A, request)
    except OSError:
        pass


def all_reduce(n):
    called(nccl.ncclGroupStart, "ncclGroupStart")
    called(nccl.ncclAllReduce, "ncclAllReduce", data, data, ctypes.c_size_t(n), 7, 0, comm, None)
    sums["ncclAllReduce"] += n
    called(nccl.ncclGroupEnd, "ncclGroupEnd")


def forward(layers, i):
    memory, size = u64(), 4096 + i % 5
    cuMemAlloc(ctypes.byref(memory), size)
    sums["cuMemAlloc"] += size
    cuMemcpyHtoD(memory, data, 1000 + i % 7)
    sums["cuMemcpyHtoD"] += 1000 + i % 7
    for layer in layers:
        layer(None)
    all_reduce(512 + i % 3)
    if device >= 0:
        ask()
    cuStreamSynchronize(None)
    cuMemFree(memory)


def main():
    rounds = int(os.environ.get("INFERENCE_ROUNDS", 1 << 62))
    layers, i, stopped = [], 0, []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
    context = ptr()
    driver("cuDevicePrimaryCtxRetain", ctypes.POINTER(ptr), ctypes.c_int)(ctypes.byref(context), 0)
    driver("cuCtxDestroy", ptr)(context)
    for name in b"gemm_1", b"relu_2":
        kernel = ptr()
        cuModuleGetFunction(ctypes.byref(kernel), ptr(4096), name)
        layers.append(Linear(kernel.value))
    called(nccl.ncclCommInitRank, "ncclCommInitRank", ctypes.byref(comm), 2, UniqueId(), 0)
    print("ready", flush=True)
    while i < rounds and not stopped:
        forward(layers, i)
        i += 1
        if rounds == 1 << 62:
            time.sleep(0.0005)
    for name, n in sorted(calls.items()):
        print("calls", name, n)
    for name, n in sorted(sums.items()):
        print("bytes", name, n)
    print("self-check ok")


main()
