/* SPDX-License-Identifier: MIT */
/* Output during a sweep: the line on the terminal, --events. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "job.h"
#include "inject/clock.h"
#include "src/base/text.h"

static void read_word(pid_t pid, const char *file, char *buf, size_t size)
{
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	f = fopen(path, "re");
	n = f ? fread(buf, 1, size - 1, f) : 0;
	if (f)
		fclose(f);
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
}

/* A title that a program has set is more exact than the program's name. */
void sweep_role(pid_t pid, char *buf, size_t size)
{
	char title[256];

	read_word(pid, "comm", title, sizeof(title));
	text_role(*title ? title : "process", buf, size);
}

static double seconds(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void sweep_event(struct sweep_job *job, const struct drive_step *step)
{
	if (!job->events)
		return;
	fprintf(job->events,
		"{\"event\":\"arm\",\"realtime_s\":%.6f,\"monotonic_s\":%.6f,\"stage\":\"%s\","
		"\"arm\":\"%s\",\"target\":%d,\"block\":%d,\"delay_ns\":[",
		seconds(CLOCK_REALTIME), seconds(CLOCK_MONOTONIC), sweep_stage_name(step->stage),
		sweep_arm_name(step->arm), step->target, step->block);
	for (size_t i = 0; i < job->cfg.n_targets; i++)
		fprintf(job->events, "%s%" PRIu64, i ? "," : "",
			step->hooked ? step->delay_ns[i] : 0);
	fputs("]}\n", job->events);
	fflush(job->events);
}

static void kappas(const struct sweep_job *job, struct drive *drive, char *buf, size_t size)
{
	size_t used = 0, shown = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < job->cfg.n_targets && shown < 3 && used < size; i++) {
		struct sweep_estimate k = drive_kappa(drive, i);

		if (isnan(k.est))
			continue;
		used += (size_t)snprintf(buf + used, size - used, "  kappa %.2f [%.2f, %.2f]",
					 k.est, k.lo, k.hi);
		shown++;
	}
}

/* On a terminal one line, overwritten in place; elsewhere one line every ten seconds. */
void sweep_show(struct sweep_job *job, struct drive *drive, bool last)
{
	static double shown;
	bool terminal = isatty(STDERR_FILENO);
	double now = seconds(CLOCK_MONOTONIC);
	struct drive_status st;
	char so_far[160], where[64] = "", left[32] = "";

	if (job->quiet)
		return;
	if (last) {
		if (terminal && shown > 0)
			fputs("\r\033[K", stderr);
		return;
	}
	if (now - shown < (terminal ? 0.1 : 10))
		return;
	shown = now;
	drive_status(drive, &st);
	kappas(job, drive, so_far, sizeof(so_far));
	if (st.blocks > 0)
		snprintf(where, sizeof(where), "  block %d of %d", st.block + 1, st.blocks);
	if (!isnan(st.left_s))
		snprintf(left, sizeof(left), "  %.0f s left", st.left_s);
	fprintf(stderr, "%ssweep: %s%s%s%s%s%s", terminal ? "\r" : "", sweep_stage_name(st.stage),
		st.target >= 0 ? "  " : "", st.target >= 0 ? job->cfg.spec[st.target] : "", where,
		left, so_far);
	fputs(terminal ? "\033[K" : "\n", stderr);
}

void sweep_show_plan(struct sweep_job *job, const struct drive *drive,
		     const struct drive_step *step)
{
	static const struct drive *shown;
	static double guard_s;
	const struct sweep_plan *plan = drive_plan(drive);
	bool terminal = isatty(STDERR_FILENO);

	if (!job->planned || !plan || step->block != 0)
		return;
	if (shown == drive && !(plan->guard_s > guard_s)) /* it is only ever raised */
		return;
	shown = drive;
	guard_s = plan->guard_s;
	if (terminal)
		fputs("\r\033[K", stderr);
	job->planned(job, plan);
}
