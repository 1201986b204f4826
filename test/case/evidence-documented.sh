#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# sbinject-evidence(5) has each counter, and each metric that users of such tools know: as a counter, or
# with the reason why there is none. An event has no field that the page lacks.
# quick
# beside others
. "$SRC/test/lib.sh"

page=$SRC/man/sbinject-evidence.5
missing=''
need_line() { grep -qE -- "$2" "$page" || missing+=" $1"; }

counters=$(sed -n 's/^.*{ "\([a-z_]*\)",.*$/\1/p' "$SRC/evidence/values.c")
[ "$(wc -w <<<"$counters")" -ge 40 ] || fail "the counters: $counters"
waits=$(sed -n 's/^.*TIME(EVIDENCE_[A-Z_]*, "\([a-z_]*\)",.*$/\1/p' "$SRC/evidence/values.c")
[ "$(wc -w <<<"$waits")" = 6 ] || fail "the reasons: $waits"
for name in $counters; do
	need_line "$name" "\\b$name\\b"
done
for name in $waits; do
	need_line "${name}_ns" "^\\.It Va ${name}_ns"
	need_line "${name}_waits" "\\b${name}_waits\\b"
done
machine=$(sed -n 's/^.*\[MACHINE_[A-Z_]*\] = "\([a-z_]*\)",$/\1/p' "$SRC/evidence/machine.c")
[ "$(wc -w <<<"$machine")" = 14 ] || fail "the counters of the machine: $machine"
for name in $machine; do
	need_line "machine:$name" "^\\.It Va (.* )?$name( |\$)"
done
cgroup=$(sed -n 's/^.*\[CGROUP_[A-Z_]*\] = "\([a-z_]*\)",$/\1/p' "$SRC/evidence/cgroup.c")
[ "$(wc -w <<<"$cgroup")" = 20 ] || fail "the counters of the control group: $cgroup"
group_part=$(sed -n '/^\.Ss The control group/,/^\.Ss Futexes/p' "$page")
for name in $cgroup; do
	grep -qE "^\.It Va (.* )?$name( |\$)" <<<"$group_part" || missing+=" cgroup:$name"
done
for name in $(grep -o '"[a-z]*_bytes"\|"read_ns"' "$SRC/evidence/memory.c" | tr -d '"'); do
	need_line "process_memory:$name" "^\.It Va (.* )?$name( |\$)"
done
for name in $(grep -o '"sbinject_evidence_[a-z_]*"' "$SRC/src/control/metrics-rows.c" | tr -d '"'); do
	need_line "$name" "^\.It Li (.* )?$name( |\$)"
done
for field in $(grep -o '\\"[a-z_]*\\":' "$SRC/src/run/event-text.c" | tr -d '\\":') \
	$(sed -n 's/.*json_put(o, "\([a-z_]*\)".*/\1/p' "$SRC/src/run/event-text.c"); do
	case $field in
	target | every | delay_ns) grep -q "$field" "$SRC/man/sbinject.1" || missing+=" $field" ;;
	*) need_line "$field" "^\\.(Va|It Va) .*\\b$field\\b" ;;
	esac
done

members=$(tr '\n' ' ' <"$SRC/src/control/report.c" | grep -oE '{ "(network|memory|io|cpu|locks)",[[:space:]]*"[a-z_]*",' | sed 's/.*"\([a-z_]*\)",$/\1/')
[ "$(wc -w <<<"$members")" -ge 40 ] || fail "the members of a report: $members"
for name in $members; do
	need_line "report:$name" "^\\.(Va|It Va) (.* )?$name( |\$)"
done

while read -r what line; do
	need_line "$what" "$line"
done <<'METRICS'
tcp-connections	^\.It Va tcp_connects , tcp_accepts|^\.It Va tcp_connects
tcp-accepts	^\.It Va tcp_accepts
tcp-bytes	^\.It Va tcp_bytes_sent , tcp_bytes_received
tcp-packets	^\.It Va tcp_segments_sent
tcp-retransmissions	^\.It Va tcp_segments_sent.*tcp_retransmissions
udp-traffic	^\.It Va udp_packets_sent , udp_packets_received , udp_bytes_sent
round-trip-time	^\.It Va tcp_rtt_ns
page-faults	^\.It Va page_faults_minor , page_faults_major
kmalloc-kfree	kmalloc\(\) , kfree\(\)
processor-caches-tlb	^\.It Va llc_references , llc_misses
oom	^The OOM killer
swap	^Swap in and out
file-opens	^\.It Va file_opens
file-closes	^Closes,
file-reads-writes	^\.It Va read_calls , write_calls
file-bytes	^\.It Va read_bytes , write_bytes
file-latency	^The time of single reads and writes
page-cache	^\.It Va page_cache_reads
block-queue	^The queue of a device
block-latency	^\.It Va disk_read_ns , disk_write_ns
fsync	^\.Xr fsync 2$
context-switches	^\.It Va switches_voluntary , switches_involuntary
migrations	^\.It Va migrations
interrupts-softirqs	^Interrupts and softirqs
throttling	^\.It Va cpu_periods , cpu_throttled_periods , cpu_throttled_ns
wakeup-latency	^The latency of wakeups
frequency-idle	^\.It Va cpu_frequency_hz , cpu_frequency_mean_hz
mutex-contention	^\.It Va kernel_mutex_waits , kernel_mutex_ns
spinlocks	^\.It Va kernel_spinlock_waits , kernel_spinlock_ns
rwsem	^\.It Va kernel_rwsem_waits , kernel_rwsem_ns
futex-waits	^\.It Va futex_waits
rcu-stalls	^RCU stalls
semaphores	^Semaphores
lock-orders	^\.Sh ORDERS OF LOCKS
METRICS
[ -z "$missing" ] || fail "sbinject-evidence(5) lacks:$missing"
exit 0
