# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Sourced by guest.sh where sbinject itself is in the guest: --backend kmod.
echo '== --backend kmod'
$V -n 3000 -g /tmp/gate -w >/tmp/out &
victim=$!
sleep 1
sbinject --backend kmod -p $victim :victim_work 20us --json /tmp/run.json --status-fd 9 9>/tmp/told \
	2>/tmp/sb.err &
sb=$!
until_said attached /tmp/told || fail "no attach: $(cat /tmp/sb.err)"
same 'the line of a run' "$(sed 's/hits=.*pid/pid/' $D/targets_list)" "$V:victim_work delay_ns=20000 pid=$victim"
! sbinject --backend kmod -p 1 /bin/busybox:x 0 --for 1ms 2>/tmp/why || fail 'a second session'
grep -q 'in use' /tmp/why || fail "a second session: $(cat /tmp/why)"
sbctl -s $sb update :victim_work 30000 >/tmp/ctl.out 2>&1 || fail "update: $(cat /tmp/ctl.out)"
same 'updated' "$(sed 's/hits=.*//' $D/targets_list)" "$V:victim_work delay_ns=30000 "
touch /tmp/gate
until_said '^called' /tmp/out || fail 'the calls were not made'
sbctl -s $sb list >/tmp/ctl.out 2>&1
same 'a session lists' "$(cat /tmp/ctl.out)" ":victim_work delay_ns=30000 hits=3000"
kill -INT $sb
wait $sb || fail "sbinject: $? $(cat /tmp/sb.err)"
grep -q '"hits": 3000' /tmp/run.json || fail "hits: $(grep hits /tmp/run.json)"
injected=$(sed -n 's/.*"injected_ns": \([0-9]*\).*/\1/p' /tmp/run.json | head -n 1)
[ "$injected" -ge 90000000 ] || fail "injected: $injected"
same 'list after a run' "$(cat $D/targets_list)" ''
same 'enabled after a run' "$(cat $D/enabled)" 0
kill -TERM $victim
wait $victim || fail "the victim of sbinject: $?"
rm /tmp/gate

# A tracer that is killed leaves nothing.
echo '== --backend kmod, its tracer killed'
rm /tmp/told # what the first one said is not its
$V -w >/tmp/out &
victim=$!
sbinject --backend kmod -p $victim $V:victim_work 20us --status-fd 9 9>/tmp/told 2>/tmp/sb.err &
sb=$!
until_said attached /tmp/told || fail "no attach: $(cat /tmp/sb.err)"
kill -9 "$(cat /proc/$sb/task/$sb/children)"
wait $sb
same 'list after a kill' "$(cat $D/targets_list)" ''
kill -TERM $victim
wait $victim

echo '== --backend kmod, a command'
# A command: counted from its first call on.
sbinject --backend kmod /bin/calls:victim_work 0 --json /tmp/run.json -- /bin/calls -n 77 >/tmp/out 2>/tmp/sb.err ||
	fail "a command: $? $(cat /tmp/sb.err)"
grep -q '"hits": 77' /tmp/run.json || fail "hits of a command: $(grep hits /tmp/run.json)"
sbinject doctor | grep -q 'kmod  *yes' || fail 'doctor does not see the module'
