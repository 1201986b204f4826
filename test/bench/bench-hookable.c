/* SPDX-License-Identifier: MIT */
/* How many functions of the libraries that everyone uses a jump can hook, by survey-plan. */
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"

static const char *const libraries[] = { "libc.so.6", "libstdc++.so.6", "libcrypto.so.?",
					 "libpython3*.so.1.0" };

static bool find_library(const char *name, char *path, size_t size)
{
	static const char *const dirs[] = {
		"/usr/lib/*-linux-gnu", "/lib/*-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib",
		"/usr/local/lib"
	};
	bool found = false;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && !found; i++) {
		char pattern[256];
		glob_t g;

		snprintf(pattern, sizeof(pattern), "%s/%s", dirs[i], name);
		found = glob(pattern, 0, NULL, &g) == 0;
		if (found)
			snprintf(path, size, "%s", g.gl_pathv[0]);
		globfree(&g);
	}
	return found;
}

/* The line "  N functions, P % by jump (...)" of a survey. */
static double survey(const char *path, double *functions)
{
	char program[512], log[128], line[512];
	char *argv[] = { program, (char *)path, NULL };
	double percent = NAN;
	FILE *f;

	snprintf(program, sizeof(program), "%s/test/unit/survey-plan", bench.build);
	snprintf(log, sizeof(log), "%s/survey.log", bench.dir);
	if (run_stop(run_start(argv, log), 0, 120000) != 0)
		return NAN;
	f = fopen(log, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " %lf functions, %lf", functions, &percent) == 2)
			break;
	if (f)
		fclose(f);
	return percent;
}

void bench_hookable(void)
{
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		char path[4096], what[80];
		double functions = 0, percent;

		snprintf(what, sizeof(what), "functions hookable by jump, %s", libraries[i]);
		if (!find_library(libraries[i], path, sizeof(path))) {
			row_missing("hooks", what, ">= 99.5 %", "not on this machine");
			continue;
		}
		percent = survey(path, &functions);
		snprintf(what, sizeof(what), "functions hookable by jump, %.20s (of %.0f)",
			 strrchr(path, '/') + 1, functions);
		row_add("hooks", what, percent, "%", ">= 99.5 %", percent >= 99.5);
	}
}
