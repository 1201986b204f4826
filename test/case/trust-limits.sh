#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# limit: 150 s
# A file whose names take about as much memory and time as its reader may have, and a reader that never
# answers: an answer, or an error that names the file, in bounded time; the programs beside it run on,
# and the next search works.
# beside others
. "$SRC/test/lib.sh"
need python3

start calls "$V/calls" -r -p 200000
calls=$pid
snapshot "$calls"

# 10 million symbols, each of them a function: 2 GB of matches.
cat >"$T/large.py" <<'P'
import struct, sys
import elffile
source, path = sys.argv[1:3]
data = elffile.read(source)
symtab = elffile.symtab(data)
at, size = struct.unpack_from("<QQ", data, symtab + 24)
function = next(data[i:i + 24] for i in range(at, at + size, 24)
                if data[i + 4] & 15 == 2 and struct.unpack_from("<H", data, i + 6)[0])
many, piece = 10 << 20, 1 << 16
end = elffile.page_after(data)
elffile.place(data, symtab, end, 24 * many)
base, = struct.unpack_from("<Q", function, 8)
symbols = b"".join(function[:8] + struct.pack("<QQ", base + k % 8, 0) for k in range(piece))
with open(path, "wb") as f:
    f.write(data)
    f.seek(end)
    for i in range(many // piece):
        f.write(symbols)
elffile.stay_mapped(path, end)
P
start large env PYTHONPATH="$SRC/test" python3 -B "$T/large.py" "$V/victim-lib.so" "$T/large.so"
began=$SECONDS
for pattern in '*' nosuchname; do
	sb -p "$calls,$pid" :victim_work 0 "large.so:$pattern" 0 --for 10ms
	[ "$rc" -lt 124 ] || fail "exit status $rc for $pattern"
	[ "$rc" -ne 0 ] || [ "$pattern" = '*' ] || fail "$pattern was found"
	told large.so
	unchanged "$calls"
done
less "seconds for names without an end" $((SECONDS - began)) 80
finish large "$pid"
rm "$T/large.so"

# A reader that a file has taken over: it does nothing, or has no memory left.
attach "$calls" :victim_work 1us
await_session
tracer=$(awk '/^TracerPid/ { print $2 }' "/proc/$calls/status")
reader_of() {
	local s

	for s in $(grep -lsE "^PPid:	$tracer\$" /proc/[0-9]*/status); do
		s=${s#/proc/} s=${s%/status}
		[ "$(cat "/proc/$s/comm" 2>/dev/null)" != sbinject-reader ] || echo "$s"
	done
}
add() { # FUNCTION
	rc=0
	timeout 60 "$CTL" add ":$1" 0 >"$T/sb.out" 2>"$T/sb.err" || rc=$?
}
grep -qE '^Max data size +[0-9]+' "/proc/$(reader_of)/limits" || fail 'its memory is not limited'
ticks() { awk '{ print $14 + $15 }' "/proc/$tracer/stat"; } # hundredths of a second
kill -STOP "$(reader_of)"
began=$SECONDS
before=$(ticks)
add victim_other
less 'processor time of the tracer, which waits' $(($(ticks) - before)) 300
[ "$rc" -ne 0 ] || fail 'a target was added without a reader'
grep -q "takes longer than 10 s\|does not answer within ten seconds" "$T/sb.err" || fail "$(cat "$T/sb.err")"
hooked "$calls" || fail 'the hook is gone'
again() { add victim_other && [ "$rc" -eq 0 ]; }
wait_for 30 again || fail "no target can be added afterwards: $(cat sb.err)"
less 'seconds for a reader that never answers' $((SECONDS - began)) 40
sb_stop
unchanged "$calls"
finish calls "$calls"
