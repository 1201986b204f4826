#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# Files that are made to be endless to read: they are refused by name, by what their headers say, and
# the other hooked programs run on.
. "$SRC/test/lib.sh"
need python3

# A library that a process maps, with a symbol table, names or code of gigabytes of holes.
cat >"$T/bomb.py" <<'P'
import struct, sys
import elffile
source, path, what = sys.argv[1:4]
data = elffile.read(source)
GB = 1 << 30
symtab = elffile.symtab(data)
names = elffile.sections(data)[struct.unpack_from("<I", data, symtab + 40)[0]]
end = elffile.page_after(data)
if what == "symbols":
    elffile.place(data, symtab, end, 6 * GB)
elif what == "names":
    elffile.place(data, names, end, 6 * GB)
elif what == "code":
    phoff, = struct.unpack_from("<Q", data, 32)
    loads = [phoff + 56 * i for i in range(struct.unpack_from("<H", data, 56)[0])]
    loads = [at for at in loads if struct.unpack_from("<I", data, at)[0] == 1]
    struct.pack_into("<QQ", data, loads[-1] + 32, 6 * GB, 6 * GB)
    struct.pack_into("<I", data, loads[-1] + 4, 5)
with open(path, "wb") as f:
    f.write(data)
    f.truncate(end + 7 * GB)
elffile.stay_mapped(path, end)
P

start calls "$V/calls" -r
calls=$pid
snapshot "$calls"
for what in symbols names code; do
	start "$what" env PYTHONPATH="$SRC/test" python3 -B "$T/bomb.py" "$V/victim-lib.so" "$T/$what.so" "$what"
	sb list -p "$pid" "$what.so:lib_fn"
	grep -q "/$what.so: .*larger than sbinject reads" "$T/sb.out" || fail "$what: $(cat "$T/sb.out")"
	refuses 1 "/$what.so: .*larger than sbinject reads" -p "$calls,$pid" :victim_work 0 \
		"$what.so:lib_fn" 0 --for 10ms
	unchanged "$calls"
	finish "$what" "$pid"
	rm "$T/$what.so"
done
finish calls "$calls"
