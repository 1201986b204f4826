/* SPDX-License-Identifier: MIT */
/* One self-contained page: the table, the gates, the machine, the command, the pictures. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include "markup.h"
#include "place.h"
#include "sweep-changes.h"
#include "sweep-plot.h"

static void machine(FILE *f)
{
	char host[256] = "", line[512];
	struct utsname u = { 0 };
	FILE *cpu = fopen("/proc/cpuinfo", "re");

	gethostname(host, sizeof(host) - 1);
	uname(&u);
	fputs("<p>", f);
	out_markup(f, host);
	fprintf(f, ", %s %s, %ld processors", u.sysname, u.release, sysconf(_SC_NPROCESSORS_ONLN));
	while (cpu && fgets(line, sizeof(line), cpu))
		if (!strncmp(line, "model name", 10) && strchr(line, ':')) {
			fputs(", ", f);
			line[strcspn(line, "\n")] = '\0';
			out_markup(f, strchr(line, ':') + 2);
			break;
		}
	if (cpu)
		fclose(cpu);
	fputs("</p>\n", f);
}

static void command(FILE *f, const struct out_sweep_about *about, const struct sweep_result *res)
{
	time_t now = time(NULL);
	char when[64];

	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S %z", localtime(&now));
	fputs("<p><code>sbinject", f);
	for (int i = 0; i < about->argc; i++) {
		fputc(' ', f);
		out_markup(f, about->argv[i]);
	}
	fprintf(f, "</code></p>\n<p>%s, seed %" PRIu64 "</p>\n", when, res->seed);
}

/* The same table as on the terminal, from the same function. */
static void table(FILE *f, const struct sweep_result *res, const struct out_sweep_about *about)
{
	char *text = NULL;
	size_t len = 0;
	FILE *mem = open_memstream(&text, &len);

	if (!mem)
		abort();
	out_sweep_table(mem, res, about);
	fclose(mem);
	fputs("<pre>", f);
	out_markup(f, text);
	fputs("</pre>\n", f);
	free(text);
}

/* An SVG from gnuplot, without its XML head. */
static void picture(FILE *f, const struct sweep_result *res, size_t n)
{
	char path[] = "/tmp/sbinject-plot-XXXXXX", line[4096];
	int fd = mkstemp(path);
	bool in = false;
	FILE *svg;

	if (fd < 0)
		return;
	close(fd);
	svg = out_sweep_gnuplot("svg", path, res, n, NULL) == 0 ? fopen(path, "re") : NULL;
	while (svg && fgets(line, sizeof(line), svg)) {
		in |= strstr(line, "<svg") != NULL;
		if (in)
			fputs(line, f);
	}
	if (svg)
		fclose(svg);
	unlink(path);
}

int out_sweep_html(const char *path, const struct sweep_result *res,
		   const struct out_sweep_about *about, struct sb_err *err)
{
	size_t n = about->n_targets < res->n_targets ? about->n_targets : res->n_targets;
	FILE *f = out_place_stream(path);

	if (!f)
		return err_sys(err, SB_EFILE, "cannot write %s", path);
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	      "<title>sbinject sweep</title><style>body{font:15px/1.5 sans-serif;margin:2em;"
	      "max-width:75em}pre{overflow-x:auto;background:#f4f4f4;padding:1em}"
	      "svg{max-width:100%;height:auto}</style></head><body>\n<h1>Sensitivity</h1>\n",
	      f);
	command(f, about, res);
	table(f, res, about);
	out_sweep_stacks(f, res, about, n);
	if (out_sweep_can_plot())
		picture(f, res, n);
	else
		fputs("<p>Without gnuplot there are no pictures.</p>\n", f);
	machine(f);
	fputs("</body></html>\n", f);
	return fclose(f) ? err_sys(err, SB_EFILE, "cannot write %s", path) : 0;
}
