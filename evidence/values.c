/* SPDX-License-Identifier: MIT */
/* The counters: their names, and sums of them. */
#include <stdlib.h>
#include "evidence.h"
#include "evidence/bpf/evidence-abi.h"

#define TIME(counter, reason, help)                     \
	[counter] = { reason "_ns", help, GROUP_TIME }, \
	[EVIDENCE_WAITS + (counter)-                    \
		EVIDENCE_FUTEX] = { reason "_waits", "How often: " help, GROUP_WAITS }

const struct evidence_kind evidence_kinds[EVIDENCE_COUNTERS] = {
	[EVIDENCE_ON_CPU] = { "on_cpu_ns", "Time on a processor.", GROUP_TIME },
	[EVIDENCE_RUN_QUEUE] = { "run_queue_ns", "Time ready to run, waiting for a processor.",
				 GROUP_TIME },
	TIME(EVIDENCE_FUTEX, "futex", "Time waiting for a futex (locks, conditions, joins)."),
	TIME(EVIDENCE_IO, "io", "Time waiting for a device, a file, a pipe or a terminal."),
	TIME(EVIDENCE_NETWORK, "network", "Time waiting for a socket, or in poll and epoll."),
	TIME(EVIDENCE_PAGE_FAULT, "page_fault", "Time waiting in a page fault."),
	TIME(EVIDENCE_SLEEP, "sleep", "Time in a sleep that the program asked for."),
	TIME(EVIDENCE_OTHER, "other", "Time waiting for something else."),
	[EVIDENCE_VOLUNTARY] = { "switches_voluntary", "Switches of threads that wait.",
				 GROUP_SWITCHES },
	[EVIDENCE_INVOLUNTARY] = { "switches_involuntary", "Switches of threads that could run.",
				   GROUP_SWITCHES },
	[EVIDENCE_WAKEUPS] = { "wakeups", "Wakeups of threads.", GROUP_SWITCHES },
	[EVIDENCE_MIGRATIONS] = { "migrations", "Threads that went on on another processor.",
				  GROUP_SWITCHES },
	[EVIDENCE_FAULTS_MINOR] = { "page_faults_minor", "Page faults served from memory.",
				    GROUP_FAULTS },
	[EVIDENCE_FAULTS_MAJOR] = { "page_faults_major", "Page faults served from a device.",
				    GROUP_FAULTS },
	[EVIDENCE_READ_CALLS] = { "read_calls", "Calls that read.", GROUP_IO },
	[EVIDENCE_WRITE_CALLS] = { "write_calls", "Calls that write.", GROUP_IO },
	[EVIDENCE_READ_BYTES] = { "read_bytes", "Bytes that they read.", GROUP_IO },
	[EVIDENCE_WRITE_BYTES] = { "write_bytes", "Bytes that they write.", GROUP_IO },
	[EVIDENCE_DISK_READ_BYTES] = { "disk_read_bytes", "Bytes read from devices.", GROUP_IO },
	[EVIDENCE_DISK_WRITE_BYTES] = { "disk_write_bytes",
					"Bytes to be written to devices, from the page cache.",
					GROUP_IO },
	[EVIDENCE_TCP_CONNECTS] = { "tcp_connects", "TCP connections begun.", GROUP_NETWORK },
	[EVIDENCE_TCP_ACCEPTS] = { "tcp_accepts", "TCP connections accepted.", GROUP_NETWORK },
	[EVIDENCE_TCP_BYTES_SENT] = { "tcp_bytes_sent", "Bytes handed to TCP.", GROUP_NETWORK },
	[EVIDENCE_TCP_BYTES_RECEIVED] = { "tcp_bytes_received", "Bytes taken from TCP.",
					  GROUP_NETWORK },
	[EVIDENCE_TCP_SEGMENTS_SENT] = { "tcp_segments_sent", "TCP segments sent.", GROUP_NETWORK },
	[EVIDENCE_TCP_SEGMENTS_RECEIVED] = { "tcp_segments_received", "TCP segments received.",
					     GROUP_NETWORK },
	[EVIDENCE_TCP_RETRANSMISSIONS] = { "tcp_retransmissions", "TCP segments sent again.",
					   GROUP_NETWORK },
	[EVIDENCE_TCP_RTT] = { "tcp_rtt_ns", "The sum of round-trip times, one for each receipt.",
			       GROUP_NETWORK },
	[EVIDENCE_TCP_RTT_SAMPLES] = { "tcp_rtt_samples", "How many round-trip times.",
				       GROUP_NETWORK },
	[EVIDENCE_UDP_BYTES_SENT] = { "udp_bytes_sent", "Bytes of UDP packets sent.",
				      GROUP_NETWORK },
	[EVIDENCE_UDP_BYTES_RECEIVED] = { "udp_bytes_received", "Bytes of UDP packets received.",
					  GROUP_NETWORK },
	[EVIDENCE_UDP_PACKETS_SENT] = { "udp_packets_sent", "UDP packets sent.", GROUP_NETWORK },
	[EVIDENCE_UDP_PACKETS_RECEIVED] = { "udp_packets_received", "UDP packets received.",
					    GROUP_NETWORK },
	[EVIDENCE_FILE_OPENS] = { "file_opens", "Files opened.", GROUP_IO },
	[EVIDENCE_DISK_READS] = { "disk_read_requests", "Reads asked of devices.", GROUP_IO },
	[EVIDENCE_DISK_READ_TIME] = { "disk_read_ns", "Time of these reads, added up.", GROUP_IO },
	[EVIDENCE_DISK_WRITES] = { "disk_write_requests", "Writes and flushes asked of devices.",
				   GROUP_IO },
	[EVIDENCE_DISK_WRITE_TIME] = { "disk_write_ns", "Time of these writes, added up.",
				       GROUP_IO },
	[EVIDENCE_SPINLOCK_WAITS] = { "kernel_spinlock_waits",
				      "How often: waits for spinlocks of the kernel.",
				      GROUP_LOCKS },
	[EVIDENCE_SPINLOCK_TIME] = { "kernel_spinlock_ns", "Time of these waits, on a processor.",
				     GROUP_LOCKS },
	[EVIDENCE_MUTEX_WAITS] = { "kernel_mutex_waits",
				   "How often: waits for mutexes of the kernel.", GROUP_LOCKS },
	[EVIDENCE_MUTEX_TIME] = { "kernel_mutex_ns", "Time of these waits.", GROUP_LOCKS },
	[EVIDENCE_RWSEM_WAITS] = { "kernel_rwsem_waits",
				   "How often: waits for semaphores of the kernel.", GROUP_LOCKS },
	[EVIDENCE_RWSEM_TIME] = { "kernel_rwsem_ns", "Time of these waits.", GROUP_LOCKS },
	[EVIDENCE_CACHE_READS] = { "page_cache_reads", "Pages that reads took from the page cache.",
				   GROUP_IO },
	[EVIDENCE_CACHE_MISSES] = { "page_cache_misses",
				    "Pages of these that were not there before.", GROUP_IO },
	[EVIDENCE_CACHE_ADDS] = { "page_cache_adds",
				  "Pages that came into the page cache: read, read ahead, written.",
				  GROUP_IO },
	[EVIDENCE_CYCLES] = { "cycles", "Cycles of the processor.", GROUP_HARDWARE },
	[EVIDENCE_INSTRUCTIONS] = { "instructions", "Instructions that it completed.",
				    GROUP_HARDWARE },
	[EVIDENCE_LLC_REFERENCES] = { "llc_references", "References to the last level of cache.",
				      GROUP_HARDWARE },
	[EVIDENCE_LLC_MISSES] = { "llc_misses", "Those of them that it did not have.",
				  GROUP_HARDWARE },
	[EVIDENCE_DTLB_MISSES] = { "dtlb_load_misses",
				   "Loads whose page the TLB of data did not have.",
				   GROUP_HARDWARE },
	[EVIDENCE_BRANCH_MISSES] = { "branch_misses", "Branches that were predicted wrong.",
				     GROUP_HARDWARE },
};

_Static_assert(EVIDENCE_REASONS == (int)EVIDENCE_STATES, "a reason for each state");

const char *evidence_reason(enum evidence_counter reason)
{
	static const char *const names[EVIDENCE_REASONS] = {
		"on_cpu", "run_queue", "futex", "io", "network", "page_fault", "sleep", "other",
	};

	return names[reason];
}

void evidence_values_add(struct evidence_values *to, const struct evidence_values *from)
{
	for (int i = 0; i < EVIDENCE_COUNTERS; i++)
		to->of[i] += from->of[i];
}

void evidence_values_take(struct evidence_values *to, const struct evidence_values *from)
{
	for (int i = 0; i < EVIDENCE_COUNTERS; i++)
		to->of[i] = to->of[i] > from->of[i] ? to->of[i] - from->of[i] : 0;
}

void evidence_reading_free(struct evidence_reading *r)
{
	free(r->thread);
	free(r->futex);
	*r = (struct evidence_reading){ 0 };
}

const struct evidence_thread *evidence_find(const struct evidence_reading *r,
					    const struct evidence_thread *thread)
{
	for (size_t i = 0; i < r->n_threads; i++)
		if (r->thread[i].tid == thread->tid && r->thread[i].began_ns == thread->began_ns)
			return &r->thread[i];
	return NULL;
}
