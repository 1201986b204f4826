# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Sourced by guest.sh, at its end: locks the kernel down, first for integrity, then for confidentiality:
# at each level what doctor says of each backend is what happens.
mount -t securityfs securityfs /sys/kernel/security
S=/sys/kernel/security
now() { sed -n 's/.*\[\(.*\)\].*/\1/p' $S/lockdown; }

fail() { echo "FAIL lockdown=$level: $*"; }
look() { sbinject doctor >/tmp/doctor; }
says() { # BACKEND PATTERN: at the last look
	grep "^  $1 " /tmp/doctor >/tmp/row || fail "doctor has no row $1"
	grep -q "$2" /tmp/row || fail "doctor: $(cat /tmp/row), not $2"
}
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

at_level() { # LEVEL: a kernel that is locked down is only ever locked down further
	level=$1
	[ "$(now)" = "$level" ] || echo "$level" >$S/lockdown || fail 'it cannot be locked down'
	[ "$(now)" = "$level" ] || fail "it is at $(now)"
	echo "== $(uname -r), lockdown=$level"
	look
	says inject yes
	counts inject
	if [ "$level" = none ]; then
		says kmod 'no: .*not loaded.*make kmod'
		insmod /speed_bump.ko || fail insmod
		look
		says kmod yes
		rmmod speed_bump
	else
		! insmod /speed_bump.ko 2>/tmp/why || fail 'an unsigned module is loaded'
		grep -q 'not permitted' /tmp/why || fail "insmod: $(cat /tmp/why)"
		says kmod 'no: .*not loaded.*signed modules only'
		refused kmod 'signed modules only'
	fi
	for how in mounted unmounted; do
		[ $how = mounted ] || { umount $S && look; }
		if [ "$level" = confidentiality ]; then
			says uprobe 'no: .*locked down (confidentiality); --backend inject'
			refused uprobe 'locked down (confidentiality)'
		else
			says uprobe yes
			counts uprobe
		fi
	done
	mount -t securityfs securityfs $S
}

for level in none integrity confidentiality; do at_level $level; done
