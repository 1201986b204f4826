#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# A library that its owner cuts short and writes anew all the time while it is read: an error or a
# result, never the end of sbinject by a signal, and no harm to what is hooked beside it.
. "$SRC/test/lib.sh"
need python3

# Maps a copy of the library to execute, reads nothing of it, and truncates it and fills it again. It
# is so large that the symbols lie far behind what is cut off.
cat >"$T/tear.py" <<'P'
import ctypes, mmap, os, signal, sys, threading, time
path, source = sys.argv[1:3]
data = open(source, "rb").read()
over = []
signal.signal(signal.SIGTERM, lambda *a: over.append(1))
fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o755)
os.write(fd, data)
page = mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
print("ready", flush=True)
while not over:
    os.ftruncate(fd, 4096)
    os.pwrite(fd, data[4096:], 4096)
    time.sleep(0.0005)
print("self-check ok")
P
lib=$(find /usr/lib -name 'libcrypto.so.3' -o -name 'libpython3*.so.1.0' -o -name 'libstdc++.so.6.*[0-9]' \
	2>/dev/null | head -n 1)
[ -n "$lib" ] || skip 'no large library'

start tear python3 "$T/tear.py" "$T/libtorn.so" "$lib"
tear=$pid
start calls "$V/calls" -r
calls=$pid
snapshot "$calls"
# Names of a pattern: every symbol is read; several times, since each reading meets another moment.
for _ in 1 2 3 4 5 6; do
	sb list -p "$tear" 'libtorn.so:*' --json "$T/run.json"
	[ "$rc" -lt 124 ] || fail "list ended with status $rc"
done
# Beside a co-target, which both ways of ending would harm under int3.
for _ in 1 2; do
	sb -p "$calls,$tear" --mechanism int3 :victim_work 0 "libtorn.so:*[0-9]*" 0 --for 100ms
	[ "$rc" -lt 124 ] || fail "attach ended with status $rc"
	unchanged "$calls"
done
finish calls "$calls"
finish tear "$tear"
