/* SPDX-License-Identifier: MIT */
/*
 * Names in the library with the most functions, landings in that with the most text, both of
 * the largest libraries of the machine.
 * Each round is a process of its own, so that every figure is from a cold start and the peak of
 * the memory is that of one resolution.
 */
#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench.h"
#include "elf/image.h"
#include "elf/symbol.h"
#include "inject/landing.h"

enum { CANDIDATES = 12, SEGMENTS = 16 };

static struct candidate {
	char path[512];
	off_t size;
} best[CANDIDATES];

static int consider(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	struct candidate *worst = &best[0];

	(void)ftw;
	if (type != FTW_F || !strstr(path, ".so") || strlen(path) >= sizeof(worst->path))
		return 0;
	for (int i = 1; i < CANDIDATES; i++)
		if (best[i].size < worst->size)
			worst = &best[i];
	if (st->st_size > worst->size) {
		strcpy(worst->path, path);
		worst->size = st->st_size;
	}
	return 0;
}

static uint64_t text_size(struct image *img)
{
	struct image_segment seg[SEGMENTS];
	size_t n = image_text(img, seg, SEGMENTS);
	uint64_t sum = 0;

	for (size_t i = 0; i < n && i < SEGMENTS; i++)
		sum += seg[i].size;
	return sum;
}

static void find_candidates(void)
{
	static const char *const roots[] = { "/usr/lib", "/usr/local", "/opt", "/root", "/home" };

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		nftw(roots[i], consider, 32, FTW_PHYS | FTW_MOUNT);
}

struct figures {
	double exact_ms, glob_ms, functions, scan_ms, text_mb, file_mb, rss_mb, name_rss_mb;
};

static bool bounds(void *ctx, uint64_t addr, uint64_t *start, uint64_t *end)
{
	return image_function_at(ctx, addr, start, end);
}

static double peak_mb(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (double)use.ru_maxrss / 1024;
}

static double scan(struct image *img, const struct symbol_list *all)
{
	struct image_segment seg[SEGMENTS];
	size_t n = image_text(img, seg, SEGMENTS);
	struct landing_set *set = landing_new();
	double begin;

	for (size_t i = 0; i < all->count; i += 1 + all->count / 1000)
		landing_add_window(set, all->sym[i].vaddr, 5);
	begin = now_ms();
	for (size_t i = 0; i < n && i < SEGMENTS; i++)
		landing_scan(set, seg[i].bytes, seg[i].vaddr, seg[i].size, bounds, img);
	begin = now_ms() - begin;
	landing_free(set);
	return begin;
}

/*
 * With a name or a glob: the time to find that. NULL: every function, the text, the scan, and
 * the name of one to ask for in a process that has no index yet.
 */
static int measure(const char *path, const char *name, struct figures *fig, char *a_name,
		   size_t size)
{
	struct symbol_list all = { 0 };
	struct sb_err err = { 0 };
	struct image *img;
	double begin = now_ms();

	if (image_get(path, path, &img, &err))
		return -1;
	if (symbol_find(img, name ? name : "*", name && !strchr(name, '*') ? SYMBOL_LITERAL : 0,
			&all, &err))
		return -1;
	if (name) {
		fig->exact_ms = now_ms() - begin;
		fig->name_rss_mb = peak_mb();
		return 0;
	}
	fig->glob_ms = now_ms() - begin;
	fig->functions = (double)all.count;
	fig->text_mb = (double)text_size(img) / 1e6;
	fig->rss_mb = peak_mb();
	fig->scan_ms = scan(img, &all);
	snprintf(a_name, size, "%s", all.sym[all.count / 2].name);
	return 0;
}

struct answer {
	struct figures fig;
	char name[512];
	bool ok;
};

static struct answer in_child(const char *path, const char *name)
{
	struct answer got = { 0 };
	int fds[2], status = 0;
	pid_t pid;

	if (pipe(fds))
		return got;
	pid = fork();
	if (pid == 0) {
		got.ok = measure(path, name, &got.fig, got.name, sizeof(got.name)) == 0;
		_exit(write(fds[1], &got, sizeof(got)) != sizeof(got));
	}
	close(fds[1]);
	if (read(fds[0], &got, sizeof(got)) != sizeof(got))
		got.ok = false;
	close(fds[0]);
	waitpid(pid, &status, 0);
	return got;
}

/* The two candidates with the most functions and with the most text; NULL: none. */
static void choose(const char **by_functions, const char **by_text)
{
	double functions = 0, text = 0;

	*by_functions = *by_text = NULL;
	find_candidates();
	for (int i = 0; i < CANDIDATES; i++) {
		struct answer got = { 0 };

		if (best[i].size)
			got = in_child(best[i].path, NULL);
		if (got.ok && got.fig.functions > functions) {
			functions = got.fig.functions;
			*by_functions = best[i].path;
		}
		if (got.ok && got.fig.text_mb > text) {
			text = got.fig.text_mb;
			*by_text = best[i].path;
		}
	}
}

static double size_mb(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (double)st.st_size / 1e6 : NAN;
}

static void row_title(const char *path, const char *what_of_it, double value, const char *unit)
{
	char what[80];

	snprintf(what, sizeof(what), "%.40s, %.0f MB: %s", strrchr(path, '/') + 1, size_mb(path),
		 what_of_it);
	row_add("names", what, value, unit, NULL, -1);
}

static void report_names(const char *path)
{
	struct samples exact = { 0 }, glob = { 0 }, every = { 0 }, rss = { 0 };
	struct answer all = { 0 };
	char pattern[640];
	double many, per_200;

	for (int i = 0; i < bench.rounds; i++) {
		struct answer one, few;

		all = in_child(path, NULL);
		one = in_child(path, all.name);
		/* the middle of its name, wherever that stands */
		snprintf(pattern, sizeof(pattern), "*%.*s*", (int)strlen(all.name) / 2,
			 all.name + strlen(all.name) / 4);
		few = in_child(path, pattern);
		samples_add(&every, all.ok ? all.fig.glob_ms : NAN);
		samples_add(&glob, few.ok ? few.fig.exact_ms : NAN);
		samples_add(&exact, one.ok ? one.fig.exact_ms : NAN);
		samples_add(&rss, one.ok ? one.fig.name_rss_mb : NAN);
	}
	many = all.fig.functions;
	row_title(path, "functions", many, "");
	row_add("names", "  an exact name, file not opened before", samples_median(&exact), "ms",
		NULL, -1);
	per_200 = samples_median(&exact) * 200 / size_mb(path);
	row_add("names", "  the same for 200 MB, in proportion", per_200, "ms", "<= 10 ms",
		met_below(per_200, 10));
	row_add("names", "  a glob over all of them that few match", samples_median(&glob), "ms",
		NULL, -1);
	row_add("names", "  the same for 300 000 functions, in proportion",
		samples_median(&glob) * 3e5 / many, "ms", "<= 50 ms",
		met_below(samples_median(&glob) * 3e5 / many, 50));
	row_add("names", "  a glob that all of them match", samples_median(&every), "ms", NULL, -1);
	row_add("names", "  peak memory for the exact name", samples_median(&rss), "MiB",
		"<= 32 MB", met_below(samples_median(&rss), 32));
	row_add("names", "  peak memory for the glob", all.fig.rss_mb, "MiB", NULL, -1);
}

static void report_landings(const char *path)
{
	struct samples scanned = { 0 };
	struct answer all = { 0 };
	double per_200;

	for (int i = 0; i < bench.rounds; i++) {
		all = in_child(path, NULL);
		samples_add(&scanned, all.ok ? all.fig.scan_ms : NAN);
	}
	per_200 = samples_median(&scanned) * 200 / all.fig.text_mb;
	row_title(path, "text", all.fig.text_mb, "MB");
	row_add("names", "  the landing scan, up to 1000 windows", samples_median(&scanned), "ms",
		NULL, -1);
	row_add("names", "  the landing scan, for 200 MB of text", per_200, "ms", "<= 200 ms",
		met_below(per_200, 200));
}

void bench_names(void)
{
	const char *by_functions, *by_text;

	choose(&by_functions, &by_text);
	if (!by_functions) {
		row_missing("names", "names in the largest library", NULL, "no library found");
		return;
	}
	report_names(by_functions);
	report_landings(by_text);
	if (strcmp(by_functions, by_text) != 0)
		report_landings(by_functions);
}
