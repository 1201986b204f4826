#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs as the only program of a kernel: the programs of the evidence load there, and what they count is
# what the programs of the test know of themselves.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /tmp
mount -t devtmpfs dev /dev # what runs beside the script reads /dev/null
mkdir -p /run
export SBINJECT_RUNTIME_DIR=/tmp/run
ip link set lo up
fail() { echo "FAIL $(uname -r): $*"; }
await() { # FILE PATTERN
	for _ in $(seq 300); do
		grep -q "$2" "$1" 2>/dev/null && return
		sleep 0.1
	done
	fail "no $2 in $1: $(cat "$1")"
}
# A session with evidence while a program works between its gate and "over".
measured() { # PROGRAM [ARG...]
	rm -f /tmp/gate /tmp/events
	program=$1
	shift
	"$program" -g /tmp/gate "$@" >/tmp/victim.out 2>&1 &
	pid=$!
	await /tmp/victim.out ready
	sbinject -p $pid libc.so.6:getpid 0 --evidence --json /tmp/run.json \
		--events /tmp/events >/tmp/out 2>/tmp/why &
	session=$!
	for _ in $(seq 300); do
		sbctl list >/dev/null 2>&1 && break
		sleep 0.1
	done
	sleep 2
	: >/tmp/gate
	await /tmp/victim.out over
	kill -INT $session
	wait $session || fail "evidence: $(cat /tmp/why)"
	kill $pid
	wait $pid || fail "the victim: $(cat /tmp/victim.out)"
	is source '"bpf"'
	is agrees true
	grep -q '"event":"wait".*"reason":"sleep"' /tmp/events || fail "no waits: $(head /tmp/events)"
	cat /tmp/victim.out
}
value() { sed -n "s/^ *\"$1\": \([^,]*\),*$/\1/p" /tmp/run.json | head -n "${2:-1}" | tail -n 1; }
is() { [ "$(value "$1")" = "$2" ] || fail "$1 is $(value "$1"), not $2"; }

echo "== $(uname -r): what explain sees"
sweep-shapes queue >/tmp/shapes.out 2>&1 &
pid=$!
await /tmp/shapes.out ready
sbinject explain -p $pid --time 4s --json /tmp/run.json >/tmp/table 2>/tmp/why || fail "explain: $(cat /tmp/why) $(dmesg | grep segfault)"
is source '"bpf"'
is adds_up true
is futexes_add_up true
grep -q ' queue+0x[0-9a-f]* (queue_p[a-z]*)$' /tmp/table || fail "no owner: $(cat /tmp/table /tmp/why)"
kill $pid
wait $pid || fail "the victim: $(cat /tmp/shapes.out)"

echo "== $(uname -r): sockets"
measured sockets 5 20
is tcp_connects 5
is tcp_accepts 5
is tcp_bytes_sent 310000 # 5 x 20 x (100 + 3000), of both threads
is tcp_bytes_received 310000
is udp_packets_sent 200
is udp_packets_received 200
is udp_bytes_sent 12000
is udp_bytes_received 12000
[ "$(value tcp_segments_sent)" -ge 200 ] || fail "tcp_segments_sent is $(value tcp_segments_sent)"
[ "$(value tcp_rtt_samples)" -ge 200 ] || fail "tcp_rtt_samples is $(value tcp_rtt_samples)"

echo "== $(uname -r): locks of the kernel, files"
measured within -f /tmp/data 5
[ "$(value file_opens)" -ge 6 ] || fail "file_opens is $(value file_opens)"
# Of the thread alone: others wait for the memory's lock.
waiter() { # COUNTER
	sed -n "/\"name\": \"v-waiter\"/,/\"name\"/s/^ *\"$1\": \([^,]*\),*\$/\1/p" /tmp/run.json
}
waited() { # KIND NS: a slow guest may come late for the lock once
	ns=$(waiter "kernel_$1_ns")
	[ "$(waiter "kernel_$1_waits")" -ge 4 ] || fail "kernel_$1_waits is $(waiter "kernel_$1_waits")"
	if [ "$ns" -gt "$2" ] || [ "$ns" -lt $(($2 / 2)) ]; then
		fail "kernel_$1_ns is $ns of $2"
	fi
}
waited rwsem "$(sed -n 's/^within v-waiter \([0-9]*\) .*/\1/p' /tmp/victim.out)"
waited mutex "$(sed -n 's/^within v-waiter [0-9]* //p' /tmp/victim.out)"
is disk_read_requests 0

echo "== $(uname -r): the page cache"
mkdir -p /tmp/ram && mount -t ramfs none /tmp/ram
measured pages -f /tmp/ram/data 64
if [ "$(value page_cache_adds)" = null ]; then
	fail 'page_cache_adds is null'
elif [ "$(value page_cache_reads)" != null ]; then
	is page_cache_reads "$(awk '/^pages/ { n += $3 } END { print n }' /tmp/victim.out)"
	is page_cache_misses 0 # all of a file is there, without a device
else
	echo 'pages: no tracepoint of reads'
	is page_cache_misses null
fi
echo 'guest: done'
poweroff -f
