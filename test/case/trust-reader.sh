#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# What searches the files of targets has no rights. Without it the next search starts another one, and
# it ends with its tracer. A name that stands for an endless one is an ordinary name.
. "$SRC/test/lib.sh"
need cc python3

child_of() { grep -lsE "^PPid:	$1\$" /proc/[0-9]*/status | sed 's|/proc/||; s|/status||'; }
reader_of() {
	local pid

	for pid in $(child_of "$1"); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != sbinject-reader ] || echo "$pid"
	done
}
has() { grep -q "^$2:	$3" "/proc/$1/status" || fail "the reader: $(grep "^$2:" "/proc/$1/status")"; }

start calls "$V/calls" -r
calls=$pid
snapshot "$calls"
attach "$calls" :victim_work 1us
await_session
tracer=$(child_of "$sb_pid")
reader=$(reader_of "$tracer")
[ -n "$reader" ] || fail "there is no reader"
has "$reader" CapPrm 0000000000000000
has "$reader" CapEff 0000000000000000
has "$reader" NoNewPrivs 1
has "$reader" Seccomp 2
[ "$(id -u)" -ne 0 ] || has "$reader" Uid '65534	65534	65534	65534'

kill -KILL "$reader"
"$CTL" add :victim_other 0 >"$T/ctl.out" 2>&1 || fail "no target can be added without the reader"
other=$(reader_of "$tracer")
[ -n "$other" ] && [ "$other" != "$reader" ] || fail "no reader was started"
kill -KILL "$tracer"
gone() { [ ! -e "/proc/$1" ] || grep -q '^State:	Z' "/proc/$1/status"; }
wait_for 10 gone "$other" || fail "the reader outlives its tracer"
sb_wait
wait_for 10 untraced "$calls" || fail "it stays traced"

# Each type is a pair of two of the one before.
name=_Z1fSt4pairIiiE digits=0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ
for ((i = 0; i < 36; i++)); do
	ref=S${digits:i:1}_
	name+=S_I$ref${ref}E
done
cat >"$T/doubles.s" <<S
.text
.globl $name
.type $name,@function
$name: nop
ret
.size $name,2
.section .note.GNU-stack,"",@progbits
S
cc -shared -nostdlib -o "$T/doubles.so" "$T/doubles.s"
cat >"$T/mapped.py" <<'P'
import ctypes, signal, sys, time
over = []
signal.signal(signal.SIGTERM, lambda *a: over.append(1))
library = ctypes.CDLL(sys.argv[1])
print("ready", flush=True)
while not over:
    time.sleep(0.005)
print("self-check ok")
P
start mapped python3 "$T/mapped.py" "$T/doubles.so"
sb list -p "$pid" 'doubles.so:*'
ended 0
grep -q "_Z1fSt4pair" "$T/sb.out" || fail "$(cat "$T/sb.out")"
finish mapped "$pid"
finish calls "$calls"
