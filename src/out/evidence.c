/* SPDX-License-Identifier: MIT */
/* The evidence of a run: lines below its table. */
#include "evidence.h"

#include <inttypes.h>
#include "grid.h"
#include "out.h"

enum { MIB = 1 << 20 };

static uint64_t more_than(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

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
	bool mean = !e->machine.why[MACHINE_FREQUENCY_MEAN];
	enum machine_counter hz = mean ? MACHINE_FREQUENCY_MEAN : MACHINE_FREQUENCY;

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
	if (e->machine.there && !e->machine.why[hz] && e->machine.of[hz])
		fprintf(to, "%sat %.2f GHz%s", before, (double)e->machine.of[hz] / 1e9,
			mean ? "" : " at the end");
	if (*before == ',' || (e->machine.there && !e->machine.why[hz] && e->machine.of[hz]))
		fputc('\n', to);
}

/* A wait that is not the machine's, as that of the root is. */
static bool is_own(const struct result_evidence *e, enum cgroup_counter counter,
		   enum machine_counter machine)
{
	const uint64_t n = e->cgroup.rows.of[counter], all = e->machine.of[machine];

	return !e->machine.there || e->machine.why[machine] ||
	       more_than(n, all) > all / 100 + 1000000;
}

/* "12 major page faults", "waits for memory 3.1% of the time"; false: there is nothing. */
static bool cgroup_text(const struct result_evidence *e, size_t i, char *text, size_t size)
{
	static const struct {
		enum cgroup_counter counter;
		const char *name;
	} rows[] = {
		{ CGROUP_MEMORY_HIGH, "times over memory.high" },
		{ CGROUP_MEMORY_MAX, "times at the limit of memory" },
		{ CGROUP_MEMORY_OOM, "times out of memory" },
		{ CGROUP_OOM_KILLS, "processes killed for memory" },
		{ CGROUP_FAULTS_MAJOR, "major page faults" },
		{ CGROUP_REFAULTS_ANON, "anonymous pages that came back" },
		{ CGROUP_REFAULTS_FILE, "pages of files that came back" },
		{ CGROUP_SWAP_IN, "pages swapped in" },
		{ CGROUP_SWAP_OUT, "pages swapped out" },
	};
	const struct result_rows *g = &e->cgroup.rows;

	if (i >= sizeof(rows) / sizeof(*rows) || g->why[rows[i].counter] || !g->of[rows[i].counter])
		return false;
	snprintf(text, size, "%" PRIu64 " %s", g->of[rows[i].counter], rows[i].name);
	return true;
}

static bool cgroup_wait_text(const struct result_evidence *e, size_t i, char *text, size_t size)
{
	static const struct {
		enum cgroup_counter counter;
		enum machine_counter machine;
		const char *name;
	} rows[] = {
		{ CGROUP_CPU_PRESSURE, MACHINE_CPU_PRESSURE, "a processor" },
		{ CGROUP_MEMORY_PRESSURE, MACHINE_MEMORY_PRESSURE, "memory" },
		{ CGROUP_IO_PRESSURE, MACHINE_IO_PRESSURE, "a device" },
	};
	const struct result_rows *g = &e->cgroup.rows;

	if (i >= sizeof(rows) / sizeof(*rows) || g->why[rows[i].counter] ||
	    !g->of[rows[i].counter] || !is_own(e, rows[i].counter, rows[i].machine))
		return false;
	snprintf(text, size, "waits for %s %.1f%% of the time", rows[i].name,
		 e->time_s > 0 ? (double)g->of[rows[i].counter] / e->time_s / 1e7 : 0);
	return true;
}

static bool cgroup_quota_text(const struct result_evidence *e, size_t i, char *text, size_t size)
{
	const struct result_rows *g = &e->cgroup.rows;
	char time[32];

	if (i || g->why[CGROUP_THROTTLED] || !g->of[CGROUP_THROTTLED])
		return false;
	snprintf(text, size,
		 "without its quota of processor time for %s in %" PRIu64 " of %" PRIu64 " periods",
		 out_time((double)g->of[CGROUP_THROTTLED], time, sizeof(time)),
		 g->of[CGROUP_THROTTLED_PERIODS], g->of[CGROUP_PERIODS]);
	return true;
}

/* What the control group counted, where it did. */
static void print_cgroup(FILE *to, const struct result_evidence *e)
{
	typedef bool text_fn(const struct result_evidence *e, size_t i, char *text, size_t size);
	static text_fn *const parts[] = { cgroup_quota_text, cgroup_wait_text, cgroup_text };
	enum { PARTS = sizeof(parts) / sizeof(*parts), ROWS = 9 };
	bool any = false;
	char text[128];

	for (size_t i = 0; e->cgroup.path && i < PARTS * (size_t)ROWS; i++) {
		if (!parts[i / ROWS](e, i % ROWS, text, sizeof(text)))
			continue;
		if (!any) {
			fputs("  the control group ", to);
			out_shown(to, e->cgroup.path);
		}
		fprintf(to, "%s%s", any ? ", " : ": ", text);
		any = true;
	}
	if (any)
		fputc('\n', to);
}

static void print_bytes(FILE *to, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	size_t unit = 0;

	for (; value >= 1024 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
		value /= 1024;
	fprintf(to, "%.*f %s", unit ? 1 : 0, value, units[unit]);
}

/* What has another size at the end than at the begin; a little of it is the C library's, which
 * other processes map, too. */
static void print_memory(FILE *to, const struct result_rows memory[2])
{
	static const char *const names[MEMORY_ROWS] = { [MEMORY_RSS] = "resident",
							[MEMORY_PSS] = "proportional",
							[MEMORY_ANONYMOUS] = "anonymous",
							[MEMORY_SWAP] = "in swap" };
	const char *before = "  memory: ";

	for (int r = 0; memory[0].there && memory[1].there && r < MEMORY_ROWS; r++) {
		if (!names[r] || memory[0].why[r] || memory[1].why[r] ||
		    more_than(memory[0].of[r], memory[1].of[r]) < MIB)
			continue;
		fprintf(to, "%s%s ", before, names[r]);
		print_bytes(to, memory[0].of[r]);
		fputs(" at the begin, ", to);
		print_bytes(to, memory[1].of[r]);
		fputs(" at the end", to);
		before = "; ";
	}
	if (*before == ';')
		fputc('\n', to);
}

void out_hardware(FILE *to, const struct result_hardware *h)
{
	if (h->limit)
		fprintf(to, "  counters of the processor: %s\n", h->limit);
	if (!h->there || h->limit)
		return;
	if (h->about.user_only)
		fputs("    of the program alone, not of the kernel: perf_event_paranoid\n", to);
	if (h->about.counted < 1)
		fprintf(to, "    scaled: counted for %.0f%% of the time or more\n",
			100 * h->about.counted);
	if (h->about.left_out)
		fprintf(to, "    without %" PRIu64 " threads: too few descriptors (ulimit -n)\n",
			h->about.left_out);
	if (h->about.unsure)
		fprintf(to, "    %" PRIu64 " threads that began meanwhile may be missing\n",
			h->about.unsure);
}

static void print_hardware(FILE *to, const struct result_evidence *e)
{
	const uint64_t *of = e->sum.of;
	const char *before = "  the processor: ";

	for (int c = EVIDENCE_CYCLES; c <= EVIDENCE_BRANCH_MISSES; c++) {
		if (!e->hardware.there || e->unknown[c])
			continue;
		fprintf(to, "%s%" PRIu64 " %s", before, of[c], evidence_kinds[c].name);
		if (c == EVIDENCE_INSTRUCTIONS && !e->unknown[EVIDENCE_CYCLES] &&
		    of[EVIDENCE_CYCLES])
			fprintf(to, " (%.2f a cycle)", (double)of[c] / (double)of[EVIDENCE_CYCLES]);
		before = ", ";
	}
	if (*before == ',')
		fputc('\n', to);
	out_hardware(to, &e->hardware);
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
	print_cgroup(to, e);
	print_memory(to, e->memory);
	print_hardware(to, e);
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
