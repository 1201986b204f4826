#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# A process of another user that was handed a forged control page, or the true one, is no process of
# the session: neither detach nor the search after a tracer's death traces it or changes its memory.
. "$SRC/test/lib.sh"
need_root
need setpriv python3
chmod 755 "$T" && mkdir -m 755 "$T/open"
cp "$V/calls" "$T/open/"
touch "$T/target.out" "$T/target.err"
start target setpriv --reuid=65534 --regid=65534 --clear-groups "$T/open/calls" -r

# A service that maps what a client hands it, as a compositor or a journal does. MODE forged: what the
# header says is copied from the target's page; true: it is that very page. UID: the service's.
cat >"$T/service.py" <<'P'
import ctypes, mmap, os, re, signal, sys, time
target, mode, uid = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
line = next(l for l in open(f"/proc/{target}/maps") if "/memfd:sbinject " in l)
span = line.split()[0]
if mode == "true":
    fd = os.open(f"/proc/{target}/map_files/{span}", os.O_RDWR)
else:
    with open(f"/proc/{target}/mem", "rb", 0) as mem:
        mem.seek(int(span.split("-")[0], 16))
        header = mem.read(4096)
    fd = os.memfd_create("sbinject")
    os.write(fd, header + bytes(3 * 4096))
os.setgid(uid)
os.setuid(uid)
# Readable as before, though its ids have changed.
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
# The true one can only be read.
page = mmap.mmap(fd, 4 * 4096, prot=mmap.PROT_READ | (mode != "true" and mmap.PROT_WRITE))
os.close(fd)
over = []
signal.signal(signal.SIGTERM, lambda *a: over.append(1))
print("ready", flush=True)
while not over:
    if mode != "true":
        page[2 * 4096] = 1
    if not re.search(r"^TracerPid:\t0$", open("/proc/self/status").read(), re.M):
        print("traced", flush=True)
    time.sleep(0.001)
print("self-check ok")
P

# serve NAME MODE UID
serve() {
	start "$1" python3 "$T/service.py" "$target" "$2" "$3"
	services+=("$1" "$pid")
}
unharmed() {
	local i

	for ((i = 0; i < ${#services[@]}; i += 2)); do
		! said "${services[i]}" traced || fail "${services[i]} was traced"
		finish "${services[i]}" "${services[i + 1]}"
	done
	services=()
}

target=$pid services=()
attach "$target" :victim_work 0
serve forged forged 12345
serve forged-root forged 0
serve forged-own forged 65534
serve true true 12345
sb_stop
ended 0
let_go "$target"
true_one=$pid
unharmed
told "process $true_one maps this session's memory"

# The same after the tracer was killed: the command line looks for whom it left behind.
attach "$target" :victim_work 0
serve forged forged 12345
serve forged-own forged 65534
serve true true 12345
kill -KILL "$(awk '/^TracerPid/ { print $2 }' "/proc/$target/status")"
sb_wait
told 'the tracer died; 1 process'
let_go "$target"
unharmed
finish target "$target"
