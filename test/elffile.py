# SPDX-License-Identifier: MIT
"""ELF files of the cases about hostile files: a library's bytes with other section headers. Offsets are
in bytes. Sections are not loaded, so a library that is changed in this way still works."""
import mmap
import os
import signal
import struct
import time

SYMTAB = 2


def read(path):
    """The file as a bytearray, which can be changed."""
    with open(path, "rb") as f:
        return bytearray(f.read())


def sections(data):
    """The offsets of the section headers."""
    shoff, = struct.unpack_from("<Q", data, 40)
    shnum, = struct.unpack_from("<H", data, 60)
    return [shoff + 64 * i for i in range(shnum)]


def symtab(data):
    """The offset of the header of the symbol table."""
    return next(at for at in sections(data) if struct.unpack_from("<I", data, at + 4)[0] == SYMTAB)


def page_after(data):
    """The offset of the first page behind the file, for new contents."""
    return (len(data) + 4095) & ~4095


def place(data, section, offset, size):
    """Gives a section other contents: size bytes at offset."""
    struct.pack_into("<QQ", data, section + 24, offset, size)


def stay_mapped(path, size):
    """Maps the beginning of the file as code until SIGTERM, as the victim of a case."""
    fd = os.open(path, os.O_RDONLY)
    page = mmap.mmap(fd, size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    over = []
    signal.signal(signal.SIGTERM, lambda *a: over.append(1))
    print("ready", flush=True)
    while not over:
        time.sleep(0.005)
    page.close()
    print("self-check ok")
