#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs as the only program of a kernel in an emulator: the module's interface, as it is stated, by
# echo and cat and by sbctl. Prints "FAIL ..." for what is wrong and "guest: done" at the end.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /tmp
mkdir -p /run /dev/shm
D=/sys/kernel/speed_bump V=/bin/calls HOME=/tmp
export SBINJECT_RUNTIME_DIR=/tmp/run
uname -r

fail() { echo "FAIL $*"; }
same() { [ "$2" = "$3" ] || fail "$1: '$2', not '$3'"; }
# A write that must succeed, one that must fail with this text; the shell's echo says why.
w() { echo "$2" >"$D/$1" || fail "echo '$2' >$1"; }
no() { # TEXT FILE COMMAND
	if (echo "$3" >"$D/$2") 2>/tmp/why; then
		fail "echo '$3' >$2 was accepted"
	else
		grep -q "$1" /tmp/why || fail "echo '$3' >$2: $(cat /tmp/why), not $1"
	fi
}
hits() { sed -n "s|^$1 delay_ns=[0-9]* hits=\([0-9]*\).*|\1|p" $D/targets_list; }
ms() { awk '{ printf "%d", $1 * 1000 }' /proc/uptime; }
INVALID='Invalid argument' NOENT='No such file' NOEXEC='Exec format' LONG='ame too long'
RANGE='out of range\|too large\|not representable' EXIST='exists' NOSPC='No space'

until_said() { # PATTERN FILE: for twenty seconds
	n=0
	until grep -q "$1" "$2" 2>/dev/null; do
		[ $n -lt 200 ] || return 1
		n=$((n + 1))
		sleep 0.1
	done
}

until_hit() { # a slow machine takes its time to start a program
	n=0
	until [ "$(hits $V:victim_work)" = 1 ]; do
		[ $n -lt 80 ] || return 1
		n=$((n + 1))
		sleep 0.1
	done
}

# ---- loading, and what is there
echo "== loading, and what is there"
insmod /speed_bump.ko || fail insmod
for f in enabled default_delay_ns targets targets_list stats; do [ -e $D/$f ] || fail "no $f"; done
same modes "$(stat -c %a $D/enabled $D/default_delay_ns $D/targets $D/targets_list $D/stats | tr '\n' ' ')" \
	'644 644 200 444 444 '
same enabled "$(cat $D/enabled)" 0
same default "$(cat $D/default_delay_ns)" 1000000
same list "$(cat $D/targets_list)" ''
same stats "$(cat $D/stats)" "enabled: 0
targets: 0
total_hits: 0
total_delay_ns: 0"

# ---- commands, and each error
echo "== commands, and each error"
w targets "+$V:victim_work 10000000"
same list "$(cat $D/targets_list)" "$V:victim_work delay_ns=10000000 hits=0"
no "$EXIST" targets "+$V:victim_work 5"
w targets "=$V:victim_work 50000"
same list "$(cat $D/targets_list)" "$V:victim_work delay_ns=50000 hits=0"
w targets "-$V:victim_work"
same list "$(cat $D/targets_list)" ''
w targets "+$V:victim_work"
w targets "+$V:victim_idle 7 pid=$$"
same list "$(cat $D/targets_list)" "$V:victim_work delay_ns=1000000 hits=0
$V:victim_idle delay_ns=7 hits=0 pid=$$"
w targets '-*'
same list "$(cat $D/targets_list)" ''
for bad in 'x' '+' '-' '=' "$V:victim_work" "+$V" "+$V:" '+:victim_work' "+$V:victim_work 5x" \
	"+$V:victim_work -5" "+$V:victim_work 5 6" "+$V:victim_work 5 pid=" "+$V:victim_work 5 pid=x" \
	"+$V:victim_work 5 pid=-1" "=$V:victim_work" "=$V:victim_work x" "+$V:victim_work 5 every=2" \
	"*$V:victim_work"; do
	no "$INVALID" targets "$bad"
done
no "$INVALID" targets "+$V:victim_work $(printf '%0600d' 0)"
no "$NOENT" targets '+/nowhere/at/all:f'
no "$NOENT" targets "+$V:no_such_function"
no "$NOENT" targets "+$V:victim_data" # no function
no "$NOENT" targets "-$V:victim_work"
no "$NOENT" targets "=$V:victim_work 5"
no "$NOEXEC" targets '+/init:f'
no "$NOEXEC" targets '+/bin:f'
no "$RANGE" targets "+$V:victim_work 10000000001"
no "$RANGE" targets "+$V:victim_work 99999999999999999999999"
w targets "+$V:victim_work 10000000000"
no "$RANGE" targets "=$V:victim_work 10000000001"
w targets "-$V:victim_work"
long=$(printf '%0129d' 0)
no "$LONG" targets "+$V:$long"
no "$LONG" targets "+/$(printf '%0256d' 0):f"
no "$NOENT" targets "+/$(printf '%0255d' 0):f" # 256 bytes
no "$INVALID" enabled 2
no "$INVALID" enabled yes
no "$RANGE" default_delay_ns 10000000001
no "$INVALID" default_delay_ns soon
w default_delay_ns 2000
same default "$(cat $D/default_delay_ns)" 2000

# A damaged file, cut at every kind of place.
for n in 1 40 64 100 200 1000 5000 10000 15000; do
	head -c $n $V >/tmp/cut
	! (echo '+/tmp/cut:victim_work 5' >$D/targets) 2>/dev/null || w targets '-*'
done

# ---- sixty-four, and not one more; a list longer than a page
echo "== sixty-four, and not one more; a list longer than a page"
n=0
while read -r f && [ $n -lt 64 ]; do
	(echo "+/lib/x86_64-linux-gnu/libc.so.6:$f 5" >$D/targets) 2>/tmp/why && n=$((n + 1))
done </functions
same 'targets at most' $n 64
no "$NOSPC" targets "+$V:victim_work 5"
same lines "$(wc -l <$D/targets_list)" 64
w targets '-*'
mkdir -p "/tmp/$(printf '%0200d' 0)" && cp $V "/tmp/$(printf '%0200d' 0)/v"
for f in victim_work victim_idle victim_other; do w targets "+/tmp/$(printf '%0200d' 0)/v:$f 5"; done
same lines "$(wc -l <$D/targets_list)" 3
w targets '-*'

# ---- counting: exactly, only while enabled
echo "== counting: exactly, only while enabled"
w targets "+$V:victim_work 0"
$V -n 500 >/tmp/out || fail 'the victim, not enabled'
same 'hits while not enabled' "$(hits $V:victim_work)" 0
w enabled 1
same enabled "$(cat $D/enabled)" 1
$V -n 500 -t 2 >/tmp/out || fail 'the victim, counted'
same hits "$(hits $V:victim_work)" 1000
w enabled 0
$V -n 500 >/tmp/out
same 'hits after disabling' "$(hits $V:victim_work)" 1000
same stats "$(cat $D/stats)" "enabled: 0
targets: 1
total_hits: 1000
total_delay_ns: 0"
w targets '-*'

# ---- delays
echo "== delays"
w targets "+$V:victim_work 10000000"
w enabled 1
start=$(ms)
$V -n 30 >/tmp/out
took=$(($(ms) - start))
[ $took -ge 300 ] || fail "30 calls of 10 ms took $took ms"
same hits "$(hits $V:victim_work)" 30
[ "$(sed -n 's/total_delay_ns: //p' $D/stats)" -ge 300000000 ] || fail "stats: $(cat $D/stats)"

# A change is for those who wait too; so is the end of it; and a kill.
for how in "echo '=$V:victim_work 0' >$D/targets" "echo 0 >$D/enabled" "echo '-*' >$D/targets" kill; do
	w targets '-*'
	w targets "+$V:victim_work 10000000000"
	w enabled 1
	$V -n 1 >/tmp/out &
	until_hit || fail "no hit before $how"
	start=$(ms)
	if [ "$how" = kill ]; then kill -9 $!; else eval "$how"; fi
	wait $! 2>/dev/null
	took=$(($(ms) - start))
	[ $took -lt 8000 ] || fail "$how: a delay of 10 s ended after $took ms"
done
w targets '-*'

# ---- pid=: a process and its descendants, daemons too; no other process
echo "== pid=: a process and its descendants, daemons too; no other process"
sh -c 'sleep 1; exec /bin/tree 20 2' >/tmp/tree &
tree=$!
w targets "+/bin/tree:tree_fn 0 pid=$tree"
w enabled 1
/bin/tree 20 2 >/tmp/other
wait $tree || fail "tree: $?"
same 'hits of a tree' "$(hits /bin/tree:tree_fn)" "$(sed -n 's/^calls tree_fn //p' /tmp/tree)"
same line "$(cat $D/targets_list)" "/bin/tree:tree_fn delay_ns=0 hits=$(hits /bin/tree:tree_fn) pid=$tree"
w targets '-*'

# ---- the same by sbctl
echo "== the same by sbctl"
c() { sbctl --kmod "$@" >/tmp/ctl.out 2>/tmp/ctl.err || fail "sbctl $*: $(cat /tmp/ctl.err)"; }
cs() { want=$1; shift; c "$@"; same "sbctl $*" "$(cat /tmp/ctl.out)" "$want"; }
cn() { # ERROR ARGS
	want=$1; shift
	! sbctl --kmod "$@" >/tmp/ctl.out 2>/tmp/ctl.err || fail "sbctl $* was accepted"
	grep -q "^sbctl: $want" /tmp/ctl.err || fail "sbctl $*: $(cat /tmp/ctl.err)"
}
cs "Added target: $V:victim_work" add $V:victim_work 10000
cs "Added target: $V:victim_idle" add $V:victim_idle 1000 --pid=$$
cs "Updated target: $V:victim_work delay=50000 ns" update $V:victim_work 50000
cs 'Default delay set to 1000000 ns' delay 1000000
cs 1000000 delay
cs 'Probes enabled' enable
$V -n 10 >/tmp/out
cs "$V:victim_work delay_ns=50000 hits=10
$V:victim_idle delay_ns=1000 hits=0 pid=$$" list
c status
same 'lines of status' "$(sed 's/[0-9]*$//' /tmp/ctl.out)" "enabled: 
targets: 
total_hits: 
total_delay_ns: "
cs 'Probes disabled' disable
cn EEXIST add $V:victim_work 5
cn ENOENT add $V:nothing 5
cn ENOENT add /nowhere:f 5
cn ENOENT remove $V:victim_other
cn ENOEXEC add /init:f 5
cn ENAMETOOLONG add $V:$long 5
cn ERANGE add $V:victim_other 10000000001
cn EINVAL add victim_other 5
cn EINVAL add $V:victim_other 5 every=2
cs "Removed target: $V:victim_work" remove $V:victim_work
cs 'All targets cleared' clear
same list "$(cat $D/targets_list)" ''
. /more.sh
. /whose.sh

# ---- unloaded under load, in the middle of a delay
echo "== unloaded under load, in the middle of a delay"
w targets "+$V:victim_work 3000000000"
w enabled 1
$V -t 2 -w >/tmp/out &
sleep 1
start=$(ms)
rmmod speed_bump || fail rmmod
took=$(($(ms) - start))
[ $took -lt 2500 ] || fail "rmmod took $took ms"
[ ! -e $D ] || fail 'the folder stays'
kill -TERM $!
wait $! || fail "the victim after rmmod: $?"
grep -q 'self-check ok' /tmp/out || fail "the victim after rmmod: $(cat /tmp/out)"
cn '.*not loaded' list
insmod /speed_bump.ko && rmmod speed_bump || fail 'a second time'

complaint=$(dmesg | grep -E 'BUG|WARNING|Oops|Call Trace|lockdep' | head -n 3)
[ -z "$complaint" ] || fail "the kernel complained: $(echo "$complaint" | tr '\n' ' ')"
. /lockdown.sh
echo 'guest: done'
poweroff -f
