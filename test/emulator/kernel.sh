#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs as the only program of a kernel: functions of it and of a module as targets. What they count,
# time and add up is what the program knows of itself.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /tmp
mount -t devtmpfs dev /dev
mkdir -p /run /tracing
mount -t tracefs tracefs /tracing
export SBINJECT_RUNTIME_DIR=/tmp/run
fail() { echo "FAIL $(uname -r): $*"; }
own() { sed -n "s/^$1 //p" /tmp/victim.out; }
# The Nth "NAME": of the document.
value() { sed -n "s/^ *\"$1\": \([^,]*\),*$/\1/p" /tmp/run.json | sed -n "${2:-1}p"; }
is() { [ "$2" = "$3" ] || fail "$1 is '$2', not '$3'"; }
has() { grep -q "$1" "$2" || fail "no $1: $(cat "$2")"; }
hooked() { grep -c 'vfs_fsync_range\|hrtimer_nanosleep' /tracing/enabled_functions; }
insmod /nvidia.ko || fail insmod

echo "== list: by fentry, by kprobe, and why not"
sbinject list kernel:vfs_fsync_range kernel:nvidia_unlocked_ioctl kernel:nvidia_ioctl 'kernel:*nv*sched*' kernel:rcu_read_unlock_strict \
	kernel:nvidia_unlocked_ioct kernel:asm_exc_page_fault >/tmp/list 2>&1
cat /tmp/list
has 'vfs_fsync_range .*  fentry' /tmp/list
has 'nvidia  *nvidia_unlocked_ioctl .*  kprobe' /tmp/list
has 'nv_kthread_q_schedule_q_item .*  kprobe' /tmp/list
has 'nvidia_unlocked_ioct  .*nvidia_unlocked_ioctl' /tmp/list
has 'asm_exc_page_fault .*notrace' /tmp/list

echo "== counts, times and arguments by fentry"
sbinject trace kernel:hrtimer_nanosleep arg=ns:1 sum=ns kernel:vfs_fsync_range arg=end:3 sum=end ret=got:i32 \
	tracepoint:sched:sched_process_fork -o /tmp/run.jsonl --json /tmp/run.json -- incalls 20 >/tmp/victim.out 2>/tmp/why ||
	fail "trace: $(cat /tmp/why)"
cat /tmp/why /tmp/victim.out
has 'self-check ok' /tmp/victim.out
is sleeps "$(grep -c '"name":"hrtimer_nanosleep","phase":"X"' /tmp/run.jsonl)" "$(own sleeps)"
is msyncs "$(grep -c '"name":"vfs_fsync_range","phase":"X"' /tmp/run.jsonl)" "$(own msyncs)"
is 'msyncs that returned 0' "$(grep -c '"got":0[,}]' /tmp/run.jsonl)" "$(own msyncs)"
is 'sum of sleeps' "$(value sum 1)" "$(own sleep_ns)"
is 'sum of ends' "$(value sum 2)" "$(own msync_ends)"
is mechanism "$(value mechanism 1)" '"fentry"'
is hits "$(value hits 1)" "$(own sleeps)"
is missed "$(value missed 1)" 0
[ "$(value inclusive_ns 1)" -ge "$(own sleep_ns)" ] || fail "slept $(value inclusive_ns 1) ns of $(own sleep_ns)"
is 'forks and threads' "$(grep -c '"name":"sched_process_fork","phase":"X"' /tmp/run.jsonl)" 4
is 'hooks that stay' "$(hooked)" 0

echo "== the same of a module without types, by kprobe; natively, too"
sbinject trace libc.so.6:msync kernel:nvidia_unlocked_ioctl arg=cmd:2:u8 sum=cmd kernel:os_alloc_mem arg=size:2:u64 sum=size \
	'kernel:nv_kthread_q_*' -o /tmp/run.jsonl --json /tmp/run.json -- incalls -d 20 >/tmp/victim.out 2>/tmp/why ||
	fail "trace: $(cat /tmp/why)"
cat /tmp/why
is ioctls "$(grep -c '"name":"nvidia_unlocked_ioctl","phase":"X"' /tmp/run.jsonl)" "$(own ioctls)"
is queued "$(grep -c '"name":"nv_kthread_q_schedule_q_item","phase":"X"' /tmp/run.jsonl)" "$(own ioctls)"
is msyncs "$(grep -c '"name":"msync","phase":"X"' /tmp/run.jsonl)" "$(own msyncs)"
is 'sum of sizes' "$(value sum 2)" "$(own numbers)"
is 'sum of numbers' "$(value sum 1)" $(($(own numbers) + 199 * $(own ioctls)))
is mechanism "$(grep -c '"mechanism": "kprobe"' /tmp/run.json)" 5
report=$(sbinject report /tmp/run.jsonl)
case $report in *nvidia_unlocked_ioctl*) ;; *) fail "report: $report" ;; esac

echo "== --kernel: each ioctl by its name, the driver below it, its interrupts and fences, beside a native function"
n=0 # of calls with that name, of that module
in_trace() { grep -c "\"name\":\"$1\",\"phase\":\"X\".*\"module\":\"$2\"" /tmp/run.jsonl; }
sbinject trace --kernel libc.so.6:msync -o /tmp/run.jsonl --json /tmp/run.json -- incalls -d 20 >/tmp/victim.out 2>/tmp/why ||
	fail "trace: $(cat /tmp/why)"
cat /tmp/why
n=$(own ioctls)
is ioctls "$(value ioctls)" "$n"
[ "$(value ioctl_ns)" -gt 0 ] || fail "they took $(value ioctl_ns) ns"
is 'in the trace' "$(grep -c '"module":"ioctl","device":"nvidiactl"' /tmp/run.jsonl)" "$n"
is failed "$(grep -c '"module":"ioctl".*"result":-22' /tmp/run.jsonl)" "$(own failed)"
for name in NV_ESC_CARD_INFO NV_ESC_REGISTER_FD NV_ESC_WAIT_OPEN_COMPLETE; do
	is "$name" "$(in_trace $name ioctl)" 4
done
is msyncs "$(grep -c '"name":"msync","phase":"X"' /tmp/run.jsonl)" "$(own msyncs)"
for name in nvidia_unlocked_ioctl os_alloc_mem uvm_api_register_gpu uvm_api_migrate nvidia_isr_kthread_bh; do
	is "$name" "$(in_trace $name nvidia)" "$n"
done
is 'from the process and from the thread of the interrupt' "$(in_trace nv_kthread_q_schedule_q_item nvidia)" $((2 * n))
is 'two functions of one name' "$(in_trace nv_kthread_q_flush nvidia)" $((2 * n))
is interrupts "$(in_trace nvidia interrupt)" "$n"
is 'result of the handlers' "$(grep -c '"module":"interrupt","irq":[0-9]*,"cpu":[01],"result":2' /tmp/run.jsonl)" "$n"
for name in dma_fence_init dma_fence_signaled dma_fence_destroy; do
	is "$name" "$(in_trace $name dma_fence)" "$n"
done
# A sleep that is over before the thread is off its processor is none there: the slower the guest, the more of them.
[ "$(in_trace 'off CPU: sleeping' sched)" -ge $(($(own sleeps) / 10)) ] || fail "asleep: $(in_trace 'off CPU: sleeping' sched)"
[ "$(in_trace 'off CPU: uninterruptible' sched)" -ge $((n / 10)) ] || fail "waited: $(in_trace 'off CPU: uninterruptible' sched)"
is 'threads of the interrupt' "$(grep -c '"type":"process","name":"irq/[0-9]*-nvidia"' /tmp/run.jsonl)" 1
is 'named as absent' "$(grep -c 'left out, as this kernel has no such name' /tmp/why)" 1
has 'kernel:nvidia_isr_msix_kthread_bh (did you mean .nvidia_isr_kthread_bh' /tmp/why
has 'tracepoint:gpu_scheduler:\*' /tmp/why
is 'not in the process' "$(grep '"nvidia_isr_kthread_bh","phase":"X"' /tmp/run.jsonl | grep -c '"tid":0')" 0

echo "== as docs/cuda-guide.md has them: does it fire, calls of each, how long they take"
sbinject kernel:nvidia_unlocked_ioctl 0 --require-hits -- incalls -d 1 >/tmp/victim.out 2>/tmp/why || fail "no hit: $(cat /tmp/why)"
sbinject kernel:nvidia_mmap 0 --require-hits -- incalls -d 1 >/tmp/victim.out 2>/tmp/why && fail 'a hit of what is not called'
sbinject trace 'kernel:nv_*' 'kernel:nvidia*' -- incalls -d 5 >/tmp/victim.out 2>/tmp/why || fail "trace: $(cat /tmp/why)"
has " $(own ioctls)  .* nvidia_unlocked_ioctl  *nvidia" /tmp/why
sbinject trace kernel:nv_kthread_q_schedule_q_item kthreads=yes -o /tmp/run.jsonl -- incalls -d 20 >/tmp/victim.out 2>/tmp/why ||
	fail "trace: $(cat /tmp/why)"
is 'of the type kernel' "$(grep -c '"type":"kernel","name":"nv_kthread_q_schedule_q_item"' /tmp/run.jsonl)" $((2 * $(own ioctls)))
sbinject report /tmp/run.jsonl --histogram >/tmp/why
has "^times of nv_kthread_q_schedule_q_item, $((2 * $(own ioctls))) calls" /tmp/why
is 'in the histogram' "$(awk '/^times of/ { on = 1 } on && /\|/ { n += $3 } END { print n }' /tmp/why)" $((2 * $(own ioctls)))

echo "== without kthreads= only what the process does"
sbinject trace kernel:nvidia_isr_kthread_bh 'kernel:nv_kthread_q_s*' --json /tmp/run.json -- incalls -d 5 >/tmp/victim.out 2>/tmp/why ||
	fail "trace: $(cat /tmp/why)"
is 'in the thread of the interrupt' "$(value hits 1)" 0
is 'in the process' "$(value hits 2)" "$(own ioctls)"

echo "== counted, and killed: nothing stays"
sbinject -p $$ kernel:vfs_fsync_range 0 kernel:hrtimer_nanosleep 0 kernel:nvidia_unlocked_ioctl 0 2>/tmp/why &
session=$!
for _ in $(seq 300); do
	[ "$(hooked)" = 2 ] && break
	sleep 0.1
done
is hooked "$(hooked)" 2
for task in /proc/[0-9]*; do
	[ "$(cat "$task/comm" 2>/dev/null)" = sbinject-tracer ] && tracer=${task#/proc/}
done
kill -9 "$session" "$tracer"
for _ in $(seq 300); do
	[ "$(hooked)" = 0 ] && break
	sleep 0.1
done
is 'hooks after SIGKILL' "$(hooked)" 0
rmmod nvidia 2>/tmp/why || fail "the module is held by $(cat /sys/module/nvidia/refcnt): $(cat /tmp/why)"

complaint=$(dmesg | grep -E 'BUG|WARNING|Oops|Call Trace|lockdep' | head -n 3)
[ -z "$complaint" ] || fail "the kernel complained: $(echo "$complaint" | tr '\n' ' ')"
echo 'guest: done'
poweroff -f
