# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Sourced by guest.sh: which process a pid= means where a number is used again or is another namespace's.
# A delay holds no other process, nor does a file.
last=/proc/sys/kernel/ns_last_pid
counted() { hits $V:victim_work; }
none() { same "hits of $1" "$(counted)" 0; }

echo '== pid= of a process that was not reaped, and its number again'
is_zombie() { grep -q '^State:	Z' "/proc/$1/status" 2>/dev/null; }
(
	sleep 3 & # it ends behind the exec: the shell would reap it
	echo $! >/tmp/zombie
	exec sleep 1000
) &
parent=$!
until [ -s /tmp/zombie ]; do sleep 0.1; done
zombie=$(cat /tmp/zombie)
for _ in $(seq 300); do is_zombie $zombie && break || sleep 0.1; done
is_zombie $zombie || fail "no zombie: $(cat /proc/$zombie/status)"
w targets "+$V:victim_work 0 pid=$zombie"
w enabled 1
kill $parent
wait $parent
while [ -e /proc/$zombie ]; do wait; sleep 0.1; done
echo $((zombie - 1)) >$last
$V -n 10 >/tmp/out &
same 'the number used again' $! $zombie
wait $!
none 'who got the number of a zombie'
w targets '-*'

echo '== pid= of one that ended, and of one that came and ended'
sleep 0.5 &
ended=$!
w targets "+$V:victim_work 0 pid=$ended"
wait $ended
echo $((ended - 1)) >$last
$V -n 10 >/tmp/out &
same 'the number used again' $! $ended
wait $!
none 'who got the number of one that ended'
w targets '-*'
awaited=$(($(cat $last) + 20))
w targets "+$V:victim_work 0 pid=$awaited"
for want in 10 10; do # the second is not it
	echo $((awaited - 1)) >$last
	$V -n 10 >/tmp/out &
	same 'the number awaited' $! $awaited
	wait $!
	same 'hits of the one that was awaited' "$(counted)" $want
done
w targets '-*'

echo '== pid= is a number of the namespace of who writes it'
rm -f /tmp/in /tmp/go
# A wait at a FIFO creates no process. A process would also take a number of the outer namespace.
mkfifo /tmp/go
awaited=$(($(cat $last) + 40))
cat >/tmp/inner <<I
echo '+$V:victim_work 0 pid=$awaited' >$D/targets
touch /tmp/in
read -r go </tmp/go
echo $((awaited - 1)) >$last
$V -n 7 >/tmp/out &
echo \$! >/tmp/inner.pid
wait
I
unshare -p -f sh /tmp/inner &
inner=$!
until [ -e /tmp/in ]; do sleep 0.1; done
echo $((awaited - 1)) >$last
$V -n 10 >/tmp/out &
same 'the same number outside' $! $awaited
wait $!
none 'a process of that number elsewhere'
echo >/tmp/go
wait $inner
same 'the number inside' "$(cat /tmp/inner.pid)" $awaited
same 'hits of the one that was meant' "$(counted)" 7
w targets '-*'

echo '== a path that is a FIFO'
mkfifo /tmp/fifo
timeout 10 sh -c "echo '+/tmp/fifo:f 5' >$D/targets" 2>/tmp/why && fail 'a FIFO was accepted'
grep -q "$NOEXEC" /tmp/why || fail "a FIFO: $(cat /tmp/why)"
timeout 10 cat $D/targets_list || fail 'the list cannot be read'

echo '== another tool at a place where a thread is delayed'
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
T=/sys/kernel/tracing
at=$(printf "0x%x" "$(cat /victim_work)")
w targets "+$V:victim_work 10000000000"
echo "p:beside $V:$at" >$T/uprobe_events || fail 'no uprobe_events'
echo 1 >$T/events/uprobes/beside/enable || fail 'the other probe cannot be put in'
$V -n 1 >/tmp/out &
delayed=$!
until_hit || fail 'no thread is delayed'
start=$(ms)
echo 0 >$T/events/uprobes/beside/enable
took=$(($(ms) - start))
[ $took -lt 5000 ] || fail "taking out the other probe took $took ms"
same 'who is delayed meanwhile' "$(counted)" 1
[ -e /proc/$delayed ] || fail 'the delay was not so long'
: >$T/uprobe_events
w targets '-*'
wait $delayed || fail "who was delayed: $?"
grep -q 'self-check ok' /tmp/out || fail "who was delayed: $(cat /tmp/out)"
w enabled 0
