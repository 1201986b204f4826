# SPDX-License-Identifier: MIT
"""confined.py sleep|busy FOLDER: step() over and over, under a filter that ends the process where
it opens a file; until FOLDER/stop is there."""
import ctypes
import os
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
folder = os.open(sys.argv[2], os.O_RDONLY | os.O_DIRECTORY)
name = ctypes.create_string_buffer(b"stop")
OPENAT = 257
KILL, ALLOW = 0x80000000, 0x7FFF0000
program = b"".join(
    struct.pack("HBBI", *i)
    for i in ((0x20, 0, 0, 0), (0x15, 0, 1, OPENAT), (6, 0, 0, KILL), (6, 0, 0, ALLOW))
)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def step():
    return 1


given = Program(4, program)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(given), 0, 0) == 0
os.write(1, b"ready\n")
while libc.faccessat(folder, name, 0, 0) != 0:
    for _ in range(1000):
        step()
    if sys.argv[1] == "sleep":
        time.sleep(0.005)
os.write(1, b"self-check ok\n")
os._exit(0)
