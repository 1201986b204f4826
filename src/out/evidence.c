/* SPDX-License-Identifier: MIT */
/* The evidence of a run: lines below its table. */
#include "evidence.h"

#include <inttypes.h>
#include "out.h"

static uint64_t total(const struct result_evidence *e)
{
	uint64_t sum = 0;

	for (int r = 0; r < EVIDENCE_REASONS; r++)
		sum += e->sum.of[r];
	return sum;
}

/* Shares of the time of all threads; of /proc, which does not know the whole, times. */
static void print_reasons(FILE *to, const struct result_evidence *e)
{
	const char *before = "";
	bool any = false;
	char text[32];

	for (int r = 0; r < EVIDENCE_REASONS; r++) {
		double ns = (double)e->sum.of[r];

		if (e->unknown[r] || !e->sum.of[r])
			continue;
		fprintf(to, "%s%s ", before, evidence_reason(r));
		if (e->limit)
			fputs(out_time(ns, text, sizeof(text)), to);
		else
			fprintf(to, "%.1f%%", 100 * ns / (double)total(e));
		before = ", ";
		any = true;
	}
	if (!any)
		fputs(e->unknown[EVIDENCE_ON_CPU] ? "without times: they are not among the groups" :
						    "no time was seen",
		      to);
}

static void print_switches(FILE *to, const struct result_evidence *e)
{
	const uint64_t *of = e->sum.of;

	fprintf(to, "  switches: %" PRIu64 " voluntary, %" PRIu64 " involuntary",
		of[EVIDENCE_VOLUNTARY], of[EVIDENCE_INVOLUNTARY]);
	if (!e->unknown[EVIDENCE_WAKEUPS])
		fprintf(to, "; wakeups: %" PRIu64 "; migrations: %" PRIu64, of[EVIDENCE_WAKEUPS],
			of[EVIDENCE_MIGRATIONS]);
}

static void print_cache(FILE *to, const struct result_evidence *e)
{
	const uint64_t *of = e->sum.of;

	if (e->unknown[EVIDENCE_CACHE_MISSES] || !of[EVIDENCE_CACHE_READS])
		return;
	fprintf(to, "  page cache: %" PRIu64 " pages read, %.1f%% of them were there\n",
		of[EVIDENCE_CACHE_READS],
		100 - 100 * (double)of[EVIDENCE_CACHE_MISSES] / (double)of[EVIDENCE_CACHE_READS]);
}

/* Waits for locks of the kernel, where there were any. */
static void print_locks(FILE *to, const struct result_evidence *e)
{
	static const struct {
		enum evidence_counter waits, time;
		const char *name;
	} locks[] = {
		{ EVIDENCE_MUTEX_WAITS, EVIDENCE_MUTEX_TIME, "mutexes" },
		{ EVIDENCE_RWSEM_WAITS, EVIDENCE_RWSEM_TIME, "semaphores" },
		{ EVIDENCE_SPINLOCK_WAITS, EVIDENCE_SPINLOCK_TIME, "spinlocks" },
	};
	const char *before = "  locks of the kernel: ";
	char text[32];

	for (size_t i = 0; i < sizeof(locks) / sizeof(*locks); i++) {
		if (e->unknown[locks[i].waits] || !e->sum.of[locks[i].waits])
			continue;
		fprintf(to, "%s%" PRIu64 " waits of %s for %s", before, e->sum.of[locks[i].waits],
			out_time((double)e->sum.of[locks[i].time], text, sizeof(text)),
			locks[i].name);
		before = ", ";
	}
	if (*before == ',')
		fputc('\n', to);
}

/* What was in the way of all threads of the machine, where it was. */
static void print_machine(FILE *to, const struct result_evidence *e)
{
	static const struct {
		enum machine_counter counter;
		bool is_time;
		const char *name;
	} rows[] = {
		{ MACHINE_CPU_PRESSURE, true, "waits for a processor" },
		{ MACHINE_MEMORY_PRESSURE, true, "for memory" },
		{ MACHINE_IO_PRESSURE, true, "for a device" },
		{ MACHINE_SWAP_IN, false, "pages swapped in" },
		{ MACHINE_SWAP_OUT, false, "pages swapped out" },
		{ MACHINE_OOM_KILLS, false, "processes killed for memory" },
		{ MACHINE_INTERRUPTS, false, "interrupts" },
		{ MACHINE_SOFTIRQS, false, "softirqs" },
	};
	const char *before = "  the machine: ";

	for (size_t i = 0; e->machine.there && i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t n = e->machine.of[rows[i].counter];

		if (e->machine.why[rows[i].counter] || !n)
			continue;
		if (rows[i].is_time)
			fprintf(to, "%s%s %.1f%% of the time", before, rows[i].name,
				e->time_s > 0 ? (double)n / e->time_s / 1e7 : 0);
		else
			fprintf(to, "%s%" PRIu64 " %s", before, n, rows[i].name);
		before = ", ";
	}
	if (*before == ',')
		fputc('\n', to);
}

static void print_stream(FILE *to, const struct result_stream *s)
{
	if (!s->asked)
		return;
	fprintf(to, "  events: %" PRIu64 " waits, %" PRIu64 " lost%s\n", s->waits, s->lost,
		!s->agrees ? "; they and the counters do not agree: do not rely on them" : "");
}

void out_evidence(FILE *to, const struct result_evidence *e)
{
	bool switches = !e->unknown[EVIDENCE_VOLUNTARY],
	     faults = !e->unknown[EVIDENCE_FAULTS_MINOR];

	if (!e->source)
		return;
	fputs("evidence: ", to);
	print_reasons(to, e);
	fputc('\n', to);
	if (switches)
		print_switches(to, e);
	if (faults)
		fprintf(to, "%spage faults: %" PRIu64 " minor, %" PRIu64 " major",
			switches ? "; " : "  ", e->sum.of[EVIDENCE_FAULTS_MINOR],
			e->sum.of[EVIDENCE_FAULTS_MAJOR]);
	if (switches || faults)
		fputc('\n', to);
	print_cache(to, e);
	print_locks(to, e);
	print_machine(to, e);
	print_stream(to, &e->stream);
	if (e->sample > 1)
		fprintf(to,
			"  of calls on sockets, reads of the page cache and waits for locks one "
			"in %u was counted, as %u\n",
			e->sample, e->sample);
	if (e->limit)
		fprintf(to, "  what threads wait for is not known: %s\n", e->limit);
	if (e->lost)
		fprintf(to, "  %" PRIu64 " thread%s %s\n", e->lost, e->lost == 1 ? "" : "s",
			e->limit ? "ended, and what it did after the last look is not counted" :
				   "could not be watched: too many at one time");
}
