#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# limit: 120 s
# A library whose names take seconds to look up, by holes in place of symbols: meanwhile another hooked
# program starts threads, forks and gets signals.
# beside others
. "$SRC/test/lib.sh"
need python3

# Sections are not loaded, so the library works.
cat >"$T/holes.py" <<'P'
import sys
import elffile
source, path = sys.argv[1:3]
data = elffile.read(source)
end = elffile.page_after(data)
elffile.place(data, elffile.symtab(data), end, 960 << 20)
with open(path, "wb") as f:
    f.write(data)
    f.truncate(end + (961 << 20))
P
cat >"$T/loads.py" <<'P'
import ctypes, signal, sys, time
ends = []
signal.signal(signal.SIGTERM, lambda *a: ends.append(1))
load = []
signal.signal(signal.SIGUSR1, lambda *a: load.append(1))
print("ready", flush=True)
while not ends:
    if load:
        load.clear()
        began = time.monotonic()
        ctypes.CDLL(sys.argv[1])
        print("loaded", int((time.monotonic() - began) * 1e6), flush=True)
    time.sleep(0.005)
print("self-check ok")
P
PYTHONPATH=$SRC/test python3 -B "$T/holes.py" "$V/victim-lib.so" "$T/holes.so"

start served "$V/served"
served=$pid
start loads python3 "$T/loads.py" "$T/holes.so"
loads=$pid

# Many names, each a search of its own.
names=()
for i in 1 2 3 4 5 6 7 8; do
	names+=("holes.so:none_$i*" 0)
done
# Now and then an attach to a program that forks all the time is refused.
for _ in 1 2 3; do
	sb_start -p "$served,$loads" :served_fn 1us "${names[@]}" holes.so:lib_fn 0 --json "$T/run.json"
	hooked_or_ended() { hooked "$served" || ! kill -0 "$sb_pid"; }
	wait_for 20 hooked_or_ended
	! hooked "$served" || break
	sb_wait
done
hooked "$served" || fail "no hook was planted"
kill -USR1 "$served"
wait_for 10 grep -q '^longest' "$T/served.out" || fail "no answer before"
kill -USR1 "$loads"
wait_for 60 grep -q '^loaded' "$T/loads.out" || fail "the library is not loaded"
kill -USR1 "$served"
twice() { [ "$(grep -c '^longest' "$T/served.out")" -eq 2 ]; }
wait_for 10 twice || fail "no answer after"
took=$(sed -n 's/^loaded //p' "$T/loads.out")
longest=$(sed -n 's/^longest //p' "$T/served.out" | tail -1)
echo "the look-up took $took us, the longest round $longest us"
[ "$took" -gt 500000 ] || fail "the look-up took only $took us"
[ $((longest * 4)) -lt "$took" ] || fail "it waited $longest us of $took us"
sb_stop
let_go "$served"
finish served "$served"
finish loads "$loads"
