/* SPDX-License-Identifier: MIT */
/* How long threads are held, what following costs, ten thousand sites, memory. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench.h"

static const char *const count_words[] = { ":bench_fn", "0", NULL };
static const char *const delay_words[] = { ":bench_fn", "5us", NULL };

/* What the further threads do; "delayed" ones stand in a stub nearly all of the time. */
static const struct stop_mode {
	const char *name;
	const char *const *words;
} stop_modes[] = {
	{ "sleep", count_words },
	{ "busy", count_words },
	{ "delayed", delay_words },
};

/* The largest gap that the subject sees while sbinject attaches and detaches; 0: without it. */
static double gap_seen(struct subject *s, const char *const *words)
{
	struct attached a;
	char line[64];
	double gap = NAN;

	fputs(words ? "gap 700\n" : "gap 300\n", s->in);
	fflush(s->in);
	if (!fgets(line, sizeof(line), s->out)) /* "watching" */
		return NAN;
	if (words && sb_attach(&a, s, words) == 0)
		sb_detach(&a);
	if (fgets(line, sizeof(line), s->out))
		gap = atof(line) / 1e6;
	return gap;
}

struct stops {
	struct samples attach, detach, gap, quiet, bare;
	const char *why;
};

static void stop_round(const struct stop_mode *mode, int threads, struct stops *st)
{
	static char reason[200];
	struct subject s = { 0 };
	struct attached a;
	char n[16];

	snprintf(n, sizeof(n), "%d", threads - 1);
	if (subject_start(&s, "subject", mode->name, n))
		return;
	if (sb_attach(&a, &s, mode->words)) {
		snprintf(reason, sizeof(reason), "%s", sb_why(&a));
		st->why = reason;
	} else if (sb_detach(&a) == 0) {
		samples_add(&st->attach, sb_json(&a, "stop_us.attach") / 1e3);
		samples_add(&st->detach, sb_json(&a, "stop_us.detach") / 1e3);
		samples_add(&st->quiet, gap_seen(&s, NULL));
		samples_add(&st->gap, gap_seen(&s, mode->words));
		samples_add(&st->bare, bare_hold(s.pid));
	}
	subject_stop(&s);
}

static void stop_report(const char *mode, int threads, const struct stops *st)
{
	double limit = threads <= 10 ? 1 : threads <= 100 ? 5 : 50;
	double attach = samples_median(&st->attach), detach = samples_median(&st->detach);
	double bare = samples_median(&st->bare);
	char what[80], goal[32];

	snprintf(goal, sizeof(goal), "<= %.0f ms more", limit);
	snprintf(what, sizeof(what), "longest hold at attach, %d threads, %s", threads, mode);
	if (isnan(attach)) {
		row_missing("stop", what, goal, "%s", st->why ? st->why : "no round succeeded");
		return;
	}
	row_add("stop", what, attach, "ms", goal, met_below(attach - bare, limit));
	snprintf(what, sizeof(what), "longest hold at detach, %d threads, %s", threads, mode);
	row_add("stop", what, detach, "ms", goal, met_below(detach - bare, limit));
	row_add("stop", "  of a tracer that only stops them, the shortest of 3", bare, "ms", NULL,
		-1);
	snprintf(what, sizeof(what), "  largest gap a thread saw over both (without: %.2f ms)",
		 samples_median(&st->quiet));
	row_add("stop", what, samples_median(&st->gap), "ms", NULL, -1);
}

void bench_stop(void)
{
	static const int counts[] = { 1, 10, 100, 1000 };
	size_t modes = sizeof(stop_modes) / sizeof(stop_modes[0]);

	for (size_t m = 0; m < modes; m++)
		for (size_t c = 0; c < 4; c++) {
			struct stops st = { 0 };

			if (bench.quick && counts[c] == 1000)
				continue;
			for (int i = 0; i < bench.rounds; i++)
				stop_round(&stop_modes[m], counts[c], &st);
			stop_report(stop_modes[m].name, counts[c], &st);
		}
}

/* ---- what following costs the target ---- */

enum { FREE, BARE, FOLLOWED, UNFOLLOWED, WAYS };

static double ask_one(struct subject *s, const char *line)
{
	double answer = NAN;

	return subject_ask(s, &answer, 1, "%s", line) == 1 ? answer / 1e3 : NAN;
}

/* most: the goal, us; 0: none. floor: what it takes without sbinject, which no tool takes less
 * than. */
static void follow_row(const char *what, double us, double most, double floor)
{
	char goal[48];

	snprintf(goal, sizeof(goal), "<= %.0f us, or 1 us more", most);
	row_add("follow", what, us, "us", most > 0 ? goal : NULL,
		most > 0 ? met_below(us, fmax(most, floor + 1)) : -1);
}

/* Attaches in one of the ways. False: that failed. */
static bool follow_begin(int way, struct subject *s, struct attached *a, pid_t *bare)
{
	static const char *const no_follow[] = { ":bench_fn", "0", "--no-follow", NULL };

	*bare = way == BARE ? bare_follow(s->pid) : 0;
	if (way == FREE || way == BARE)
		return *bare >= 0;
	return sb_attach(a, s, way == FOLLOWED ? count_words : no_follow) == 0;
}

static void follow_end(int way, struct attached *a, pid_t bare)
{
	if (way == BARE)
		bare_end(bare);
	else if (way != FREE)
		sb_detach(a);
}

void bench_follow(void)
{
	static const char *const how[WAYS] = { "not attached", "a tracer that only continues it",
					       "followed", "--no-follow" };
	static const int floor[WAYS] = { FREE, FREE, BARE, FREE };
	static const double sig_most[WAYS] = { 0, 0, 9, 0 }, clone_most[WAYS] = { 0, 0, 60, 15 };
	struct samples sig[WAYS] = { 0 }, clone[WAYS] = { 0 };
	struct subject s = { 0 };
	char what[80];

	if (subject_start(&s, "subject", NULL, NULL))
		return;
	for (int i = 0; i < bench.rounds; i++)
		for (int w = 0; w < WAYS; w++) {
			struct attached a = { 0 };
			pid_t bare;

			if (!follow_begin(w, &s, &a, &bare))
				continue;
			samples_add(&sig[w], ask_one(&s, "signal 3000"));
			samples_add(&clone[w], ask_one(&s, "clone 300"));
			follow_end(w, &a, bare);
		}
	subject_stop(&s);
	for (int w = 0; w < WAYS; w++) {
		snprintf(what, sizeof(what), "a signal to itself, %s", how[w]);
		follow_row(what, samples_median(&sig[w]), sig_most[w],
			   samples_median(&sig[floor[w]]));
		snprintf(what, sizeof(what), "a thread made and joined, %s", how[w]);
		follow_row(what, samples_median(&clone[w]), clone_most[w],
			   samples_median(&clone[floor[w]]));
	}
}

/* ---- many sites, memory, the cost of a whole run ---- */

static void many_sites(void)
{
	static const char *const words[] = { ":site_*", "0", "--for", "300ms", NULL };
	struct samples planted = { 0 }, held = { 0 }, sites = { 0 }, rss = { 0 };
	struct attached a;

	for (int i = 0; i < bench.rounds; i++) {
		struct subject s = { 0 };

		if (subject_start(&s, "subject-sites", NULL, NULL))
			return;
		if (sb_attach(&a, &s, words) == 0) {
			samples_add(&planted, a.planted_ms);
			samples_add(&rss, (double)a.rss_kb / 1024);
			if (run_stop(a.pid, 0, 20000) == 0) {
				samples_add(&held, sb_json(&a, "stop_us.attach") / 1e3);
				samples_add(&sites, sb_json(&a, "targets.0.sites"));
			}
		}
		subject_stop(&s);
	}
	if (!planted.n) {
		row_missing("sites", "10 000 sites by one glob", "<= 200 ms", "%s", sb_why(&a));
		return;
	}
	row_add("sites", "sites hooked by one glob over 10 000 functions", samples_median(&sites),
		"", "10000", samples_median(&sites) == 10000);
	row_add("sites", "  from the start of sbinject until planted", samples_median(&planted),
		"ms", "<= 200 ms", met_below(samples_median(&planted), 200));
	row_add("sites", "  longest hold", samples_median(&held), "ms", "<= 20 ms",
		met_below(samples_median(&held), 20));
	row_add("sites", "  peak memory, both processes", samples_median(&rss), "MiB", NULL, -1);
}

/* One site: the memory, and the wall time of a whole attach and detach. */
static void one_site(void)
{
	struct samples planted = { 0 }, ended = { 0 }, rss = { 0 };
	struct subject s = { 0 };
	struct attached a;

	if (subject_start(&s, "subject", NULL, NULL))
		return;
	for (int i = 0; i < bench.rounds; i++) {
		double at;

		if (sb_attach(&a, &s, count_words))
			continue;
		samples_add(&planted, a.planted_ms);
		samples_add(&rss, (double)a.rss_kb / 1024);
		at = now_ms();
		if (sb_detach(&a) == 0)
			samples_add(&ended, now_ms() - at);
	}
	subject_stop(&s);
	row_add("sites", "from the start of sbinject until one site is planted",
		samples_median(&planted), "ms", NULL, -1);
	row_add("sites", "from SIGINT to the end of sbinject", samples_median(&ended), "ms", NULL,
		-1);
	row_add("sites", "peak memory of both processes, one site, small target",
		samples_median(&rss), "MiB", "<= 32 MB", met_below(samples_median(&rss), 32));
}

void bench_sites(void)
{
	if (!sb_runs()) {
		row_missing("sites", "everything", NULL, "no %s/sbinject", bench.build);
		return;
	}
	one_site();
	many_sites();
}
