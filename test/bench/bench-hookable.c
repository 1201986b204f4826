/* SPDX-License-Identifier: MIT */
/*
 * How many functions of real libraries are hooked by which mechanism, and how many of those
 * windows are proven to do in a stub what they did in place: by test/prove/. Every refused
 * function is named, with its reason, in build/refused.tsv.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"

static const struct {
	const char *name, *each; /* each Nth window is proven with --quick */
} libraries[] = {
	{ "libc.so.6", "1" },	   { "libstdc++.so.6", "1" },
	{ "libcrypto.so.?", "1" }, { "libpython3.12.so.1.0", "1" },
	{ "largest", "50" },
};

struct survey {
	char path[4096];
	double functions, percent, body, tail, pre, proven, run, read, wrong;
};

/* The lines that prove.c's summary() writes. */
static int survey_read(const char *log, struct survey *s)
{
	char line[4096];
	FILE *f = fopen(log, "re");
	int ret = -1;

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '/')
			snprintf(s->path, sizeof(s->path), "%s", line);
		if (!strstr(line, "windows proven"))
			continue;
		if (sscanf(line,
			   " %lf functions, %lf %% by jump (body %lf, tail %lf, pre %lf), %lf "
			   "windows proven: %lf run, %lf read, %lf wrong",
			   &s->functions, &s->percent, &s->body, &s->tail, &s->pre, &s->proven,
			   &s->run, &s->read, &s->wrong) == 9)
			ret = 0;
	}
	if (f)
		fclose(f);
	return ret;
}

static int survey(const char *name, const char *each, struct survey *s)
{
	char program[512], log[128], refused[512];
	char *argv[] = { program, "-a", "-r", refused, "-e", (char *)each, (char *)name, NULL };

	snprintf(program, sizeof(program), "%s/test/prove/prove", bench.build);
	snprintf(refused, sizeof(refused), "%s/refused.tsv", bench.build);
	snprintf(log, sizeof(log), "%s/survey.log", bench.dir);
	run_stop(run_start(argv, log), 0, 600000);
	return survey_read(log, s);
}

static void rows(const struct survey *s)
{
	const struct {
		const char *what;
		double count;
	} shapes[] = { { "jump over the body", s->body },
		       { "jump over body and tail padding", s->tail },
		       { "jump through padding before", s->pre },
		       { "refused", s->functions * (100 - s->percent) / 100 } };
	const char *file = strrchr(s->path, '/') + 1;
	char what[120];

	snprintf(what, sizeof(what), "%.24s: hookable by jump, of %.0f functions", file,
		 s->functions);
	row_add("hooks", what, s->percent, "%", ">= 99.5 %", s->percent >= 99.5);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		snprintf(what, sizeof(what), "%.24s: %s", file, shapes[i].what);
		row_add("hooks", what, 100 * shapes[i].count / s->functions, "%", "-", -1);
	}
	snprintf(what, sizeof(what), "%.24s: windows run in both places, of %.0f", file, s->proven);
	row_add("hooks", what, 100 * s->run / s->proven, "%", "-", -1);
	snprintf(what, sizeof(what), "%.24s: windows that behave differently", file);
	row_add("hooks", what, s->wrong, "", "0", s->wrong == 0);
}

void bench_hookable(void)
{
	char refused[512];

	snprintf(refused, sizeof(refused), "%s/refused.tsv", bench.build);
	unlink(refused);
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		struct survey s = { .path = "" };

		if (survey(libraries[i].name, bench.quick ? libraries[i].each : "1", &s) == 0)
			rows(&s);
		else
			row_missing("hooks", libraries[i].name, ">= 99.5 %",
				    s.path[0] ? "could not be read" : "not on this machine");
	}
	fprintf(stderr, "bench: refused functions and their reasons: %s\n", refused);
}
