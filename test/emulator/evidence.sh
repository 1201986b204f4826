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
# A program that waits at its gate, as NAME.
waiting() { # NAME PROGRAM [ARG...]
	name=$1
	program=$2
	shift 2
	"$program" -g "/tmp/$name.gate" "$@" >"/tmp/$name.out" 2>&1 &
	pids="$pids${pids:+,}$!"
	await "/tmp/$name.out" ready
}
works() { # NAME: from its gate on, until its work is over
	: >"/tmp/$1.gate"
	await "/tmp/$1.out" over
}
value() { sed -n "s/^ *\"$1\": \([^,]*\),*$/\1/p" /tmp/run.json | head -n "${2:-1}" | tail -n 1; }
is() { [ "$(value "$1")" = "$2" ] || fail "$1 is $(value "$1"), not $2"; }

echo "== $(uname -r): what explain sees"
sweep-shapes queue make=1000 take=10000 rest=1 >/tmp/shapes.out 2>&1 &
pid=$!
await /tmp/shapes.out ready
sbinject explain -p $pid --time 2s --json /tmp/run.json >/tmp/table 2>/tmp/why || fail "explain: $(cat /tmp/why) $(dmesg | grep segfault)"
is source '"bpf"'
is adds_up true
is futexes_add_up true
grep -q ' queue+0x[0-9a-f]* (queue_p[a-z]*)$' /tmp/table || fail "no owner: $(cat /tmp/table /tmp/why)"
kill $pid
wait $pid || fail "the victim: $(cat /tmp/shapes.out)"

# One session for all: to load the programs takes an emulator some seconds.
echo "== $(uname -r): a session with evidence"
pids=''
mkdir -p /tmp/ram && mount -t ramfs none /tmp/ram
waiting sockets sockets 5 20
waiting within within -f /tmp/data 5
waiting pages pages -f /tmp/ram/data 64
mkfifo /tmp/told
sbinject -p "$pids" libc.so.6:getpid 0 --evidence --json /tmp/run.json --events /tmp/events \
	--status-fd 9 9>/tmp/told >/tmp/out 2>/tmp/why &
session=$!
read -r told </tmp/told
case $told in attached*) ;; *) fail "no session: $told $(cat /tmp/why)" ;; esac
for name in sockets within pages; do works $name; done
kill -INT $session
wait $session || fail "evidence: $(cat /tmp/why)"
for pid in $(echo "$pids" | tr , ' '); do
	kill "$pid"
	wait "$pid" || fail "a victim: $(cat /tmp/*.out)"
done
is source '"bpf"'
is agrees true
grep -q '"event":"wait".*"reason":"sleep"' /tmp/events || fail "no waits: $(head /tmp/events)"
cat /tmp/sockets.out /tmp/within.out /tmp/pages.out
# Of one thread alone: others have such waits, too.
of() { # THREAD COUNTER
	sed -n "/\"name\": \"$1\"/,/\"name\"/s/^ *\"$2\": \([^,]*\),*\$/\1/p" /tmp/run.json
}

echo "== $(uname -r): sockets"
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
[ "$(of v-files file_opens)" -ge 6 ] || fail "file_opens is $(of v-files file_opens)"
waited() { # KIND NS: a slow guest may come late for the lock once
	ns=$(of v-waiter "kernel_$1_ns")
	[ "$(of v-waiter "kernel_$1_waits")" -ge 4 ] || fail "kernel_$1_waits is $(of v-waiter "kernel_$1_waits")"
	if [ "$ns" -gt "$2" ] || [ "$ns" -lt $(($2 / 2)) ]; then
		fail "kernel_$1_ns is $ns of $2"
	fi
}
waited rwsem "$(sed -n 's/^within v-waiter \([0-9]*\) .*/\1/p' /tmp/within.out)"
waited mutex "$(sed -n 's/^within v-waiter [0-9]* //p' /tmp/within.out)"
is disk_read_requests 0

echo "== $(uname -r): the page cache"
if [ "$(value page_cache_adds)" = null ]; then
	fail 'page_cache_adds is null'
elif [ "$(value page_cache_reads)" != null ]; then
	is page_cache_reads "$(awk '/^pages/ { n += $3 } END { print n }' /tmp/pages.out)"
	is page_cache_misses 0 # all of a file is there, without a device
else
	echo 'pages: no tracepoint of reads'
	is page_cache_misses null
fi
echo 'guest: done'
poweroff -f
