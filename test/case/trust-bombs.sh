#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# Files that are made to be endless to read: they are refused by name, by what their headers say, and
# whoever is hooked beside them runs on.
. "$SRC/test/lib.sh"
need python3

# A library that a process maps, with a symbol table, names or code of gigabytes of holes.
cat >"$T/bomb.py" <<'P'
import mmap, os, signal, struct, sys, time
source, path, what = sys.argv[1:4]
data = bytearray(open(source, "rb").read())
GB = 1 << 30
shoff, = struct.unpack_from("<Q", data, 40)
shnum, = struct.unpack_from("<H", data, 60)
sections = [shoff + 64 * i for i in range(shnum)]
kind = lambda at: struct.unpack_from("<I", data, at + 4)[0]
symtab = next(at for at in sections if kind(at) == 2)
names = shoff + 64 * struct.unpack_from("<I", data, symtab + 40)[0]
end = (len(data) + 4095) & ~4095
if what == "symbols":
    struct.pack_into("<QQ", data, symtab + 24, end, 6 * GB)
elif what == "names":
    struct.pack_into("<QQ", data, names + 24, end, 6 * GB)
elif what == "code":
    phoff, = struct.unpack_from("<Q", data, 32)
    loads = [phoff + 56 * i for i in range(struct.unpack_from("<H", data, 56)[0])]
    loads = [at for at in loads if struct.unpack_from("<I", data, at)[0] == 1]
    struct.pack_into("<QQ", data, loads[-1] + 32, 6 * GB, 6 * GB)
    struct.pack_into("<I", data, loads[-1] + 4, 5)
fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o755)
os.write(fd, data)
os.ftruncate(fd, end + 7 * GB)
page = mmap.mmap(fd, end, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
over = []
signal.signal(signal.SIGTERM, lambda *a: over.append(1))
print("ready", flush=True)
while not over:
    time.sleep(0.005)
print("self-check ok")
P

start calls "$V/calls" -r
calls=$pid
snapshot "$calls"
for what in symbols names code; do
	start "$what" python3 "$T/bomb.py" "$V/victim-lib.so" "$T/$what.so" "$what"
	sb list -p "$pid" "$what.so:lib_fn"
	grep -q "/$what.so: .*larger than sbinject reads" "$T/sb.out" || fail "$what: $(cat "$T/sb.out")"
	refuses 1 "/$what.so: .*larger than sbinject reads" -p "$calls,$pid" :victim_work 0 \
		"$what.so:lib_fn" 0 --for 10ms
	unchanged "$calls"
	finish "$what" "$pid"
	rm "$T/$what.so"
done
finish calls "$calls"
