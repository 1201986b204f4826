#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs as the only program of a kernel that was booted with lockdown=integrity or =confidentiality,
# or with none: what doctor says of each backend is what happens.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /tmp
mount -t securityfs securityfs /sys/kernel/security
mkdir -p /run
export SBINJECT_RUNTIME_DIR=/tmp/run
level=$(sed -n 's/.*\[\(.*\)\].*/\1/p' /sys/kernel/security/lockdown)
echo "== $(uname -r), lockdown=$level"

fail() { echo "FAIL lockdown=$level: $*"; }
row() { sbinject doctor | grep "^  $1 " || fail "doctor has no row $1"; }
says() { row "$1" | grep -q "$2" || fail "doctor: $(row "$1"), not $2"; }
counts() { # BACKEND: it does what doctor said
	sbinject --backend "$1" -q /bin/calls:victim_work 0 --json /tmp/run.json -- /bin/calls -n 77 \
		>/tmp/out 2>/tmp/why || fail "$1: $(cat /tmp/why)"
	grep -q '"hits": 77' /tmp/run.json || fail "$1 did not count 77 calls"
	grep -q 'self-check ok' /tmp/out || fail "$1: the victim: $(cat /tmp/out)"
}
refused() { # BACKEND PATTERN
	! sbinject --backend "$1" /bin/calls:victim_work 0 -- /bin/calls -n 77 >/tmp/out 2>/tmp/why ||
		fail "$1 was accepted"
	grep -q "$2" /tmp/why || fail "$1: $(cat /tmp/why), not $2"
	! grep -q '^calls' /tmp/out || fail "$1: the command was run all the same"
}

grep -qw "lockdown=$level" /proc/cmdline || fail "the kernel did not take $(cat /proc/cmdline)"
says inject yes
counts inject
if [ "$level" = none ]; then
	says kmod 'no: .*not loaded.*make kmod'
	insmod /speed_bump.ko || fail insmod
	says kmod yes
	rmmod speed_bump
else
	! insmod /speed_bump.ko 2>/tmp/why || fail 'an unsigned module is loaded'
	grep -q 'not permitted' /tmp/why || fail "insmod: $(cat /tmp/why)"
	says kmod 'no: .*not loaded.*signed modules only'
	refused kmod 'signed modules only'
fi
for how in mounted unmounted; do
	if [ "$level" = confidentiality ]; then
		says uprobe 'no: .*locked down (confidentiality); --backend inject'
		refused uprobe 'locked down (confidentiality)'
	else
		says uprobe yes
		counts uprobe
	fi
	[ $how = unmounted ] || umount /sys/kernel/security
done
echo 'guest: done'
poweroff -f
