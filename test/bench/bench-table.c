/* SPDX-License-Identifier: MIT */
/* The rows of the bench, as a table and as JSON, with the machine that they were taken on. */
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include "bench.h"

static struct row {
	char group[16], what[80], unit[12], goal[48], reason[160];
	double value;
	int met;
} rows[256];
static size_t n_rows;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void samples_add(struct samples *s, double value)
{
	if (s->n < MAX_SAMPLES && !isnan(value))
		s->v[s->n++] = value;
}

double samples_median(const struct samples *s)
{
	struct samples sorted = *s;

	if (!s->n)
		return NAN;
	qsort(sorted.v, sorted.n, sizeof(sorted.v[0]), by_value);
	return s->n % 2 ? sorted.v[s->n / 2] : (sorted.v[s->n / 2 - 1] + sorted.v[s->n / 2]) / 2;
}

int met_below(double value, double limit)
{
	return isnan(value) ? -1 : value <= limit;
}

static struct row *row_new(const char *group, const char *what, const char *goal)
{
	struct row *r = &rows[n_rows];

	if (n_rows == sizeof(rows) / sizeof(rows[0])) {
		fprintf(stderr, "bench: too many rows\n");
		exit(1);
	}
	n_rows++;
	snprintf(r->group, sizeof(r->group), "%s", group);
	snprintf(r->what, sizeof(r->what), "%s", what);
	snprintf(r->goal, sizeof(r->goal), "%s", goal ? goal : "");
	r->value = NAN;
	r->met = -1;
	return r;
}

void row_add(const char *group, const char *what, double value, const char *unit, const char *goal,
	     int met)
{
	struct row *r;

	if (isnan(value)) {
		row_missing(group, what, goal, "no measurement succeeded");
		return;
	}
	r = row_new(group, what, goal);
	r->value = value;
	r->met = met;
	snprintf(r->unit, sizeof(r->unit), "%s", unit);
}

void row_missing(const char *group, const char *what, const char *goal, const char *fmt, ...)
{
	struct row *r = row_new(group, what, goal);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->reason, sizeof(r->reason), fmt, ap);
	va_end(ap);
}

static void cpu_model(char *buf, size_t size)
{
	char line[256];
	FILE *f = fopen("/proc/cpuinfo", "re");

	snprintf(buf, size, "unknown processor");
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) || !colon)
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(buf, size, "%s", colon + 2);
		break;
	}
	if (f)
		fclose(f);
}

static void format_value(const struct row *r, char *buf, size_t size)
{
	double v = fabs(r->value);

	snprintf(buf, size,
		 v >= 1000 ? "%.0f" :
		 v >= 100  ? "%.1f" :
		 v >= 1	   ? "%.2f" :
			     "%.3f",
		 r->value);
}

void rows_print(FILE *to)
{
	static const char *const met[] = { "", "NO", "yes" };
	struct utsname host;
	char cpu[128], value[32];

	uname(&host);
	cpu_model(cpu, sizeof(cpu));
	fprintf(to, "%s, %ld processors, Linux %s; medians of %d interleaved rounds%s\n\n", cpu,
		sysconf(_SC_NPROCESSORS_ONLN), host.release, bench.rounds,
		bench.quick ? " (--quick)" : "");
	fprintf(to, "%-7s %-58s %12s %-6s %-28s %s\n", "", "what", "measured", "", "goal", "met");
	for (size_t i = 0; i < n_rows; i++) {
		const struct row *r = &rows[i];

		if (r->reason[0]) {
			fprintf(to, "%-7s %-58s %12s %-6s %-28s\n", r->group, r->what, "-", "",
				r->goal);
			fprintf(to, "%-7s   not measured: %s\n", "", r->reason);
			continue;
		}
		format_value(r, value, sizeof(value));
		fprintf(to, "%-7s %-58s %12s %-6s %-28s %s\n", r->group, r->what, value, r->unit,
			r->goal, met[r->met + 1]);
	}
}

int rows_write_json(const char *path)
{
	json_t *list = json_array(), *doc;
	struct utsname host;
	char cpu[128];
	int rc;

	uname(&host);
	cpu_model(cpu, sizeof(cpu));
	for (size_t i = 0; i < n_rows; i++) {
		const struct row *r = &rows[i];

		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:o, s:s, s:s, s:o, s:s}", "group",
						r->group, "what", r->what, "value",
						isnan(r->value) ? json_null() : json_real(r->value),
						"unit", r->unit, "goal", r->goal, "met",
						r->met < 0 ? json_null() : json_boolean(r->met),
						"reason", r->reason));
	}
	doc = json_pack("{s:s, s:s, s:s, s:I, s:i, s:b, s:I, s:o}", "schema", "sbinject.bench/1",
			"cpu", cpu, "kernel", host.release, "processors",
			(json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "rounds", bench.rounds, "quick",
			bench.quick, "time", (json_int_t)time(NULL), "rows", list);
	rc = doc ? json_dump_file(doc, path, JSON_INDENT(1) | JSON_REAL_PRECISION(8)) : -1;
	json_decref(doc);
	if (rc)
		fprintf(stderr, "bench: cannot write %s\n", path);
	return rc;
}
